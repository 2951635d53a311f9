package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// mostNamed is how many nodes an Event names.
const mostNamed = 20

func hasFinalizer(goop *v1alpha1.Goop) bool {
	return controllerutil.ContainsFinalizer(goop, v1alpha1.CleanupFinalizer)
}

// setFinalizers writes the finalizers of a Goop, as they were seen with one more or one less. A merge patch replaces
// the whole list: the version keeps others' from being lost.
func (r *GoopReconciler) setFinalizers(ctx context.Context, goop *v1alpha1.Goop, finalizers []string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": goop.UID, "resourceVersion": goop.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return fmt.Errorf("writing the finalizers of Goop %s: %w", goop.Name, err)
	}
	if err := r.Patch(ctx, goop.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("changing the finalizers of Goop %s: %w", goop.Name, err)
	}
	return nil
}

// giveUp lets the Goop go when the time for its cleanup is over.
func (r *GoopReconciler) giveUp(ctx context.Context, seen *facts) (bool, error) {
	timeout := time.Duration(seen.goop.Spec.CleanupTimeoutSeconds) * time.Second
	if left := seen.goop.DeletionTimestamp.Add(timeout).Sub(seen.now); left > 0 {
		seen.comeBack(left)
		return false, nil
	}
	return true, r.letGo(ctx, seen)
}

// stop ends the work: it deletes the DaemonSets one by one. While their pods are there, the cleanup waits.
func (r *GoopReconciler) stop(ctx context.Context, seen *facts) (bool, error) {
	for _, number := range slices.Sorted(maps.Keys(seen.rounds)) {
		if daemonSet := seen.rounds[number]; !isGoing(daemonSet) {
			return true, r.remove(ctx, daemonSet, "DaemonSet")
		}
	}
	// It was made before the operator was restarted without the flag.
	if seen.cleanup != nil && seen.hostRefused && !isGoing(seen.cleanup) {
		return true, r.remove(ctx, seen.cleanup, "DaemonSet")
	}
	return false, nil
}

// workersLeft tells whether a pod of the work is still there. Of one whose node is gone, or does not answer, nothing
// is to be expected.
func workersLeft(seen *facts) bool {
	return len(seen.rounds) > 0 || slices.ContainsFunc(seen.pods, func(pod corev1.Pod) bool {
		node := pod.Spec.NodeName
		return pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleWork && seen.nodes.there[node] != nil && !seen.nodes.silent(node)
	})
}

// startCleanup makes the DaemonSet of the cleanup, for the nodes that are still there. In a namespace that is about to
// go there is no cleanup, and nobody waits for it.
func (r *GoopReconciler) startCleanup(ctx context.Context, seen *facts) (bool, error) {
	nodes := slices.Sorted(maps.Keys(seen.record.Begun))
	nodes = slices.DeleteFunc(nodes, func(node string) bool { return seen.nodes.there[node] == nil })
	// The garbage collector may yet remove the Goop from the owners of what is made.
	orphaning := controllerutil.ContainsFinalizer(seen.goop, metav1.FinalizerOrphanDependents)
	if workersLeft(seen) || orphaning || seen.cleanup != nil || len(nodes) == 0 {
		return false, nil
	}
	err := r.createDaemonSet(ctx, seen.goop, plan.Round{Nodes: nodes}, desiredCleanup(seen.goop, nodes, r.Images))
	var refused *refusedError
	if errors.As(err, &refused) && refused.forGood {
		return true, r.letGo(ctx, seen)
	}
	return true, err
}

// release lets the Goop go when the cleanup has ended on every node that is there.
func (r *GoopReconciler) release(ctx context.Context, seen *facts) (bool, error) {
	if workersLeft(seen) {
		return false, nil
	}
	for _, left := range remains(seen) {
		if left.waiting {
			return false, nil
		}
	}
	return true, r.letGo(ctx, seen)
}

// letGo takes the finalizer away, from the record first, and tells what was left. It does so in one pass: the next would
// find no record to tell from.
func (r *GoopReconciler) letGo(ctx context.Context, seen *facts) error {
	told := cleanupStory(seen)
	if err := r.confirm(ctx, seen.goop); err != nil {
		return err
	}
	if err := r.releaseRecord(ctx, seen); err != nil {
		return err
	}
	finalizers := slices.DeleteFunc(slices.Clone(seen.goop.Finalizers), func(name string) bool { return name == v1alpha1.CleanupFinalizer })
	if err := r.setFinalizers(ctx, seen.goop, finalizers); err != nil {
		return err
	}
	r.announce(seen.goop, told)
	return nil
}

// remain is a node that is not cleaned up.
type remain struct {
	node, why string
	// waiting: it may yet be.
	waiting bool
}

// remains are the nodes where work has begun and cleanupCmd has not ended with 0, by name.
func remains(seen *facts) []remain {
	var cleaned tale
	if seen.cleanup != nil {
		cleaned = tell(seen.pods, map[types.UID]int{seen.cleanup.UID: 0}, func(plan.Place) bool { return false })
	}
	var left []remain
	for _, node := range slices.Sorted(maps.Keys(seen.record.Begun)) {
		switch result, finished := cleaned.ended[plan.Place{Node: node}]; {
		case finished && result.ExitCode == 0:
		case finished:
			left = append(left, remain{node: node, why: fmt.Sprintf("exit code %d", result.ExitCode)})
		case seen.nodes.there[node] == nil:
			left = append(left, remain{node: node, why: "gone"})
		default:
			left = append(left, remain{node: node, why: "not finished", waiting: true})
		}
	}
	return left
}

// cleanupStory tells how the cleanup went.
func cleanupStory(seen *facts) occurrence {
	left := remains(seen)
	switch {
	case len(seen.record.Begun) == 0:
		return occurrence{corev1.EventTypeNormal, v1alpha1.ReasonCleanedUp, "no work had begun: there was nothing to clean up"}
	case len(left) == 0:
		return occurrence{corev1.EventTypeNormal, v1alpha1.ReasonCleanedUp, fmt.Sprintf("cleanupCmd has ended with 0 on all nodes where work ran: %d", len(seen.record.Begun))}
	}
	var named []string
	for _, one := range left[:min(len(left), mostNamed)] {
		named = append(named, fmt.Sprintf("%s (%s)", one.node, one.why))
	}
	message := fmt.Sprintf("cleanupCmd has not ended with 0 on %d of %d nodes: ", len(left), len(seen.record.Begun))
	if seen.hostRefused {
		message = hostAccessMessage + "; " + message
	}
	return occurrence{corev1.EventTypeWarning, v1alpha1.ReasonCleanupIncomplete, message + listed(named, len(left)-len(named), longestNote-len(message))}
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
