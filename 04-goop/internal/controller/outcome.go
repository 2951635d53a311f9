package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// maxNodesNamed is how many nodes the outcome of a cleanup lists.
const maxNodesNamed = 20

// cleanupTimeLeft is how much of cleanupTimeoutSeconds is left.
func cleanupTimeLeft(observed *observation) time.Duration {
	started := observed.now
	if at := observed.goop.Status.CleanupStartTime; at != nil {
		started = at.Time
	}
	return started.Add(time.Duration(observed.goop.Spec.CleanupTimeoutSeconds) * time.Second).Sub(observed.now)
}

// workersLeft reports whether the cleanup has to wait for pods of the work. It does not wait for pods on nodes that no
// longer exist or are unreachable. A pod without a node may be scheduled at any moment.
func workersLeft(observed *observation) bool {
	return len(observed.rounds) > 0 || slices.ContainsFunc(observed.pods, func(pod corev1.Pod) bool {
		node := pod.Spec.NodeName
		return isWorkOf(observed.goop, &pod) && (node == "" || observed.nodes.isReachable(node))
	})
}

// isWorkOf reports whether a pod belongs to the work of this Goop. A pod of an earlier Goop of the same name may never
// terminate, so it does not count.
func isWorkOf(goop *v1alpha1.Goop, pod *corev1.Pod) bool {
	return pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleWork && isMadeFor(goop, pod)
}

// nodesToClean returns the existing nodes where the end of the cleanup is not recorded, sorted.
func nodesToClean(observed *observation) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(observed.record.Begun)), func(node string) bool {
		_, cleaned := observed.record.Cleaned[node]
		return cleaned || observed.nodes.there[node] == nil
	})
}

// nodesWithoutWork leaves out the nodes with a pod of the work. These nodes are unreachable, and the pods end when the
// nodes respond again.
func nodesWithoutWork(observed *observation, nodes []string) []string {
	with := map[string]bool{}
	for i := range observed.pods {
		if pod := &observed.pods[i]; isWorkOf(observed.goop, pod) {
			with[pod.Spec.NodeName] = true
		}
	}
	return slices.DeleteFunc(nodes, func(node string) bool { return with[node] })
}

// anyToClean reports whether there is a node where the cleanup has not ended.
func anyToClean(observed *observation) bool {
	return slices.ContainsFunc(nodesToClean(observed), func(node string) bool {
		_, ended := observed.cleaning.ended[plan.Place{Node: node}]
		return !ended
	})
}

// lacksCleanupPods reports whether nodes have to be cleaned up and the DaemonSet of the cleanup has no pod for that.
func lacksCleanupPods(observed *observation) bool {
	return observed.cleanup != nil && !isBeingDeleted(observed.cleanup) && observed.failure == nil &&
		observed.cleaning.unfinished == 0 && anyToClean(observed)
}

// uncleaned lists the nodes where work has begun and cleanupCmd has not ended with 0, sorted, each with the reason.
func uncleaned(observed *observation) []string {
	var all []string
	for _, node := range slices.Sorted(maps.Keys(observed.record.Begun)) {
		exitCode, ended := observed.record.Cleaned[node]
		if result, unrecorded := observed.cleaning.ended[plan.Place{Node: node}]; !ended && unrecorded {
			exitCode, ended = result.ExitCode, true
		}
		switch {
		case ended && exitCode == 0:
		case ended:
			all = append(all, fmt.Sprintf("%s (exit code %d)", node, exitCode))
		case observed.nodes.there[node] == nil:
			all = append(all, node+" (gone)")
		default:
			all = append(all, node+" (not finished)")
		}
	}
	return all
}

// concludedStatus is the status at the end of the cleanup.
func concludedStatus(observed *observation) v1alpha1.GoopStatus {
	status := desiredStatus(observed)
	reason, message := cleanupOutcome(observed)
	set(&status, observed, metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: reason, Message: message})
	return status
}

// cleanupOutcome returns the reason and the message for the end of the cleanup.
func cleanupOutcome(observed *observation) (reason, message string) {
	left, begun := uncleaned(observed), len(observed.record.Begun)
	// Work may have begun on nodes that are missing from the record: it is damaged, also if a shard was lost before the end of the
	// work, so that its uid is empty; it lacks what addUnrecorded has added; or nothing says where.
	unsure := observed.damage != nil || slices.Contains(observed.uids, "") || len(observed.record.Changed()) > 0 || isUntraceable(observed)
	switch {
	case begun == 0 && (unsure || isForged(observed)):
		return v1alpha1.ReasonCleanupIncomplete, "cleanupCmd has not run: the record does not say where workers had started"
	case begun == 0:
		return v1alpha1.ReasonCleanedUp, "no worker had started: there was nothing to clean up"
	case len(left) == 0 && unsure:
		return v1alpha1.ReasonCleanupIncomplete, fmt.Sprintf("cleanupCmd exited with 0 on %d nodes, and work may have begun on others: the record is not complete", begun)
	case len(left) == 0:
		return v1alpha1.ReasonCleanedUp, fmt.Sprintf("cleanupCmd exited with 0 on all nodes where work ran: %d", begun)
	}
	message = fmt.Sprintf("cleanupCmd did not exit with 0 on %d of %d nodes: ", len(left), begun)
	if observed.hostRejected {
		message = hostAccessMessage + "; " + message
	}
	named := left[:min(len(left), maxNodesNamed)]
	return v1alpha1.ReasonCleanupIncomplete, message + listed(named, len(left)-len(named), maxEventNote-len(message))
}

// listed joins as many names as there is room for, and adds how many more there are.
func listed(names []string, more, room int) string {
	for {
		text := strings.Join(names, ", ")
		if more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		if len(text) <= room || len(names) == 0 {
			return text
		}
		names, more = names[:len(names)-1], more+1
	}
}
