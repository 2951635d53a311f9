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

// maxNodesNamed is how many nodes the outcome of a cleanup names.
const maxNodesNamed = 20

// cleanupTimeLeft is how long the cleanup may yet take.
func cleanupTimeLeft(observed *observation) time.Duration {
	started := observed.now
	if at := observed.goop.Status.CleanupStartTime; at != nil {
		started = at.Time
	}
	return started.Add(time.Duration(observed.goop.Spec.CleanupTimeoutSeconds) * time.Second).Sub(observed.now)
}

// workersLeft tells whether a pod of the work is still there. Of one whose node is gone, or does not respond, nothing
// is to be expected.
func workersLeft(observed *observation) bool {
	return len(observed.rounds) > 0 || slices.ContainsFunc(observed.pods, func(pod corev1.Pod) bool {
		node := pod.Spec.NodeName
		return pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleWork && observed.nodes.there[node] != nil && !observed.nodes.isUnreachable(node)
	})
}

// nodesToClean are the nodes that are there and where the end of the cleanup is not recorded, sorted.
func nodesToClean(observed *observation) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(observed.record.Begun)), func(node string) bool {
		_, cleaned := observed.record.Cleaned[node]
		return cleaned || observed.nodes.there[node] == nil
	})
}

// anyToClean tells whether there is a node on which the cleanup may yet end.
func anyToClean(observed *observation) bool {
	return slices.ContainsFunc(nodesToClean(observed), func(node string) bool {
		_, ended := observed.cleaning.ended[plan.Place{Node: node}]
		return !ended
	})
}

// uncleaned names the nodes where work has begun and cleanupCmd has not ended with 0, sorted, each with the reason.
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

// concludedStatus is the status of the moment in which the cleanup is over.
func concludedStatus(observed *observation) v1alpha1.GoopStatus {
	status := desiredStatus(observed)
	reason, message := cleanupOutcome(observed)
	set(&status, observed, metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: reason, Message: message})
	return status
}

// cleanupOutcome says how the cleanup went: a reason and a message.
func cleanupOutcome(observed *observation) (reason, message string) {
	left, begun := uncleaned(observed), len(observed.record.Begun)
	switch {
	case begun == 0:
		return v1alpha1.ReasonCleanedUp, "no work had begun: there was nothing to clean up"
	case len(left) == 0:
		return v1alpha1.ReasonCleanedUp, fmt.Sprintf("cleanupCmd has ended with 0 on all nodes where work ran: %d", begun)
	}
	message = fmt.Sprintf("cleanupCmd has not ended with 0 on %d of %d nodes: ", len(left), begun)
	if observed.hostRejected {
		message = hostAccessMessage + "; " + message
	}
	named := left[:min(len(left), maxNodesNamed)]
	return v1alpha1.ReasonCleanupIncomplete, message + listed(named, len(left)-len(named), maxEventNote-len(message))
}

// listed names as many as there is room for, and says how many more there are.
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
