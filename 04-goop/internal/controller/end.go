package controller

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// ending is the condition that the end of the work sets.
type ending struct {
	condition, reason, message string
}

// endOf returns how the work ends now; nil if it does not end. It is computed from the record alone, because results that
// are not recorded may be lost. While the record cannot be read, only the deadline ends the work. The second value is the
// time until the deadline, 0 if only an event can cause the end.
func endOf(observed *observation) (*ending, time.Duration) {
	if observed.goop.Ended() {
		return nil, 0
	}
	if isLost(observed) {
		return &ending{v1alpha1.ConditionFailed, observed.damage.reason, observed.damage.message}, 0
	}
	failed, readable, started := observed.record.Failed, observed.damage == nil, startOf(observed)
	switch finished := readable && allRecorded(observed); {
	case readable && failed > 0 && observed.goop.Spec.FailurePolicy == v1alpha1.FailurePolicyFailFast:
		return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonWorkersFailed, workersFailed(observed) + ", and failurePolicy is FailFast"}, 0
	case finished && failed > 0:
		return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonWorkersFailed, workersFailed(observed)}, 0
	case finished:
		return &ending{v1alpha1.ConditionComplete, v1alpha1.ReasonSucceeded, "every worker exited with 0"}, 0
	case observed.stopping || observed.goop.Spec.ActiveDeadlineSeconds == nil || started.IsZero():
		return nil, 0
	}
	deadline := *observed.goop.Spec.ActiveDeadlineSeconds
	if left := started.Add(time.Duration(deadline) * time.Second).Sub(observed.now); left > 0 {
		return nil, left
	}
	return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("activeDeadlineSeconds (%d) was exceeded", deadline)}, 0
}

// isStarted reports whether the record states that the work was started, or resumed after it was last suspended. The API
// server may have rejected the suspension in the record.
func isStarted(observed *observation) bool {
	suspended := conditionOf(observed.goop.Status.Conditions, v1alpha1.ConditionSuspended)
	started := observed.record.Started
	return observed.damage == nil && !started.IsZero() &&
		(suspended.Status != metav1.ConditionTrue || !started.Before(suspended.LastTransitionTime.Time))
}

// startOf returns when the work was started or resumed; zero if it was not. If the record cannot be read, the status has
// that time.
func startOf(observed *observation) time.Time {
	started, suspended := observed.goop.Status.StartTime, conditionOf(observed.goop.Status.Conditions, v1alpha1.ConditionSuspended)
	switch {
	case observed.damage == nil:
		return observed.record.Started
	case started == nil || suspended.Status == metav1.ConditionTrue:
		return time.Time{}
	case started.Before(&suspended.LastTransitionTime):
		return suspended.LastTransitionTime.Time
	}
	return started.Time
}

// workersFailed describes the first failure. It has no counts: they are in the status, and would change the message with
// each worker.
func workersFailed(observed *observation) string {
	if len(observed.record.Failures) == 0 {
		return "a worker has failed"
	}
	first := observed.record.Failures[0]
	return fmt.Sprintf("the first failed worker is that of round %d on node %s: exit code %d", first.Round, first.Node, first.ExitCode)
}

// allRecorded reports whether all workers have finished. Without a jobCount that is one on each eligible node, and at
// least one.
func allRecorded(observed *observation) bool {
	if count := observed.goop.Spec.JobCount; count != nil {
		return len(observed.record.Finished) >= int(*count)
	}
	for _, node := range observed.eligible {
		if !observed.record.Finished[plan.Place{Node: node}] {
			return false
		}
	}
	return len(observed.record.Finished) > 0
}
