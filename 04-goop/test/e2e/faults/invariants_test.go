package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
	"example.com/workbook/shared/faults"
)

// owned is that the operator writes only what is its own. That includes what was orphaned of a Goop that is being deleted.
var owned = faults.Invariant{Name: "the operator writes only what is its own", Check: func(ctx context.Context, s *faults.State) error {
	goops, err := faults.All[v1alpha1.Goop](s)
	if err != nil {
		return err
	}
	if before := s.Last.Before; before != nil && len(before.GetOwnerReferences()) == 0 {
		if slices.ContainsFunc(goops, func(goop *v1alpha1.Goop) bool {
			madeFor := before.GetLabels()[v1alpha1.LabelGoopUID] == string(goop.UID)
			return goop.DeletionTimestamp != nil && (madeFor || slices.Contains(goop.Status.RecordUIDs, string(before.GetUID())))
		}) {
			return nil
		}
	}
	return faults.Owned(&v1alpha1.Goop{}).Check(ctx, s)
}}

// start is a container that began to work.
type start struct{ pod, goop, node, round, role string }

// startOf returns what a write says to have begun.
func startOf(s *faults.State, w faults.Write) (*start, error) {
	before, after, err := faults.Of[corev1.Pod](s, w)
	if err != nil || before == nil || after == nil || len(before.Status.InitContainerStatuses) > 1 || len(after.Status.InitContainerStatuses) < 2 {
		return nil, err
	}
	return startIn(after), nil
}

func startIn(pod *corev1.Pod) *start {
	of := pod.Labels
	return &start{string(pod.UID), of[v1alpha1.LabelGoopUID], pod.Spec.NodeName, of[v1alpha1.LabelRound], of[v1alpha1.LabelRole]}
}

// runsAgain is that a command runs again at its place only where the README says that it may: never while the first one
// runs, unless a user took that pod from its DaemonSet; after a recorded end only if a user has deleted the pod, or changed
// it so that its DaemonSet has no pod there; else only if the pod was deleted, its node left, or the Goop was suspended.
var runsAgain = faults.Invariant{Name: "a command runs again only if its end was not recorded", Check: func(_ context.Context, s *faults.State) error {
	now, err := startOf(s, s.Last)
	if err != nil || now == nil {
		return err
	}
	var again *start
	recorded, evicted, lost, ended := false, false, false, false
	for _, w := range s.Writes()[:len(s.Writes())-1] {
		one, err := startOf(s, w)
		if err != nil {
			return err
		}
		if one != nil && one.goop == now.goop && one.node == now.node && one.round == now.round && one.role == now.role {
			again, evicted, lost, ended = one, false, false, false
		}
		recorded = recorded || records(s, w, now)
		if again != nil && w.Before != nil && string(w.Before.GetUID()) == again.pod {
			evicted, lost = evicted || w.By == "user", lost || w.By == "garbage-collector"
		}
		ended = ended || endsWork(s, w, now)
	}
	switch {
	case again == nil:
		return nil
	case recorded && !evicted:
		return fmt.Errorf("%s of round %s on %s runs again after its end was recorded, and no user took its pod away", now.role, now.round, now.node)
	case !evicted && !lost && !ended:
		return fmt.Errorf("%s of round %s on %s runs again without a reason", now.role, now.round, now.node)
	}
	pods, err := faults.All[corev1.Pod](s)
	for _, pod := range pods {
		if string(pod.UID) == again.pod && works(pod) {
			return fmt.Errorf("%s of round %s runs twice on %s", now.role, now.round, now.node)
		}
	}
	return err
}}

// works reports whether the command of a pod runs that belongs to a DaemonSet.
func works(pod *corev1.Pod) bool {
	statuses := pod.Status.InitContainerStatuses
	return metav1.GetControllerOf(pod) != nil && len(statuses) > 1 && statuses[1].State.Running != nil
}

// records reports whether a write records the end at a place.
func records(s *faults.State, w faults.Write, at *start) bool {
	_, shard, err := faults.Of[corev1.ConfigMap](s, w)
	return err == nil && shard != nil && has(shard, at)
}

// has reports whether a ConfigMap records the end at a place.
func has(shard *corev1.ConfigMap, at *start) bool {
	if goopOf(shard) != at.goop {
		return false
	}
	line := fmt.Sprintf("f %s %s ", at.node, at.round)
	if at.role == v1alpha1.RoleCleanup {
		line = fmt.Sprintf("c %s ", at.node)
	}
	return strings.Contains("\n"+shard.Data[record.Key], "\n"+line)
}

func goopOf(object metav1.Object) string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// endsWork reports whether a write of a user ends work that may begin again: it suspends the Goop, a node leaves, or a
// dependent is changed.
func endsWork(s *faults.State, w faults.Write, at *start) bool {
	if w.By != "user" || w.Before == nil {
		return false
	}
	if _, goop, err := faults.Of[v1alpha1.Goop](s, w); err != nil || goop != nil {
		return goop != nil && string(goop.UID) == at.goop && goop.Spec.Suspend
	}
	node, left, err := faults.Of[corev1.Node](s, w)
	return err == nil && (node == nil || node.Name == at.node && left == nil)
}

// keeps is that what ended stays recorded: no line of a record is lost, and Complete and Failed stay.
var keeps = faults.Invariant{Name: "what has ended stays recorded", Check: func(_ context.Context, s *faults.State) error {
	if s.Last.By != "operator" || s.Last.Before == nil || s.Last.After == nil {
		return nil
	}
	was, is, err := faults.Of[corev1.ConfigMap](s, s.Last)
	if err == nil && was != nil && !strings.HasPrefix(is.Data[record.Key], was.Data[record.Key]) {
		return fmt.Errorf("%s was %q and is %q", is.Name, was.Data[record.Key], is.Data[record.Key])
	}
	before, after, err := faults.Of[v1alpha1.Goop](s, s.Last)
	if err == nil && before != nil && before.Ended() && !after.Ended() {
		return fmt.Errorf("%s had ended and has not", after.Name)
	}
	return err
}}

// ends is that Suspended=True says what is: no unfinished worker exists, and none is to start.
var ends = faults.Invariant{Name: "a suspended Goop has no unfinished worker", Check: func(_ context.Context, s *faults.State) error {
	now, err := startOf(s, s.Last)
	if err != nil || now == nil || now.role != v1alpha1.RoleWork {
		return err
	}
	others := slices.ContainsFunc(s.Writes(), func(w faults.Write) bool {
		return w.By == "user" && w.Before != nil && slices.Contains([]string{"daemonsets", "pods"}, w.Resource.Resource)
	})
	goops, err := faults.All[v1alpha1.Goop](s)
	for _, goop := range goops {
		if string(goop.UID) == now.goop && goop.Spec.Suspend && apimeta.IsStatusConditionTrue(goop.Status.Conditions, v1alpha1.ConditionSuspended) && !others {
			return fmt.Errorf("%s is Suspended, and work starts on %s", goop.Name, now.node)
		}
	}
	return err
}}

// reported is that in steady state the status is about the current generation and counts what is there.
var reported = faults.Invariant{Name: "the status says what is", Check: func(_ context.Context, s *faults.State) error {
	if !s.Steady {
		return nil
	}
	goops, err := faults.All[v1alpha1.Goop](s)
	if err != nil {
		return err
	}
	for _, goop := range goops {
		if goop.Status.ObservedGeneration != goop.Generation {
			return fmt.Errorf("%s has a status of an older spec", goop.Name)
		}
		running, err := runningOf(s, goop)
		if err != nil {
			return err
		}
		if goop.Status.Running != running {
			return fmt.Errorf("%s says that %d workers run, and %d do", goop.Name, goop.Status.Running, running)
		}
		reason := apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionRunning)
		if reason == nil || slices.Contains([]string{v1alpha1.ReasonAPIError, v1alpha1.ReasonApplyFailed}, reason.Reason) {
			return fmt.Errorf("%s reports a failure that has passed: %v", goop.Name, reason)
		}
	}
	return nil
}}

// stops is that in steady state no command runs at a place whose end is recorded, whatever began it.
var stops = faults.Invariant{Name: "recorded work does not go on", Check: func(_ context.Context, s *faults.State) error {
	if !s.Steady {
		return nil
	}
	shards, err := faults.All[corev1.ConfigMap](s)
	if err != nil {
		return err
	}
	pods, err := faults.All[corev1.Pod](s)
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && works(pod) && slices.ContainsFunc(shards, func(shard *corev1.ConfigMap) bool { return has(shard, startIn(pod)) }) {
			return fmt.Errorf("work runs on %s, and its end is recorded", pod.Spec.NodeName)
		}
	}
	return err
}}

// runningOf counts the workers of a Goop whose command runs.
func runningOf(s *faults.State, goop *v1alpha1.Goop) (int32, error) {
	pods, err := faults.All[corev1.Pod](s)
	var running int32
	for _, pod := range pods {
		ofGoop := pod.Labels[v1alpha1.LabelGoopUID] == string(goop.UID) && pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleWork
		if ofGoop && works(pod) {
			running++
		}
	}
	return running, err
}
