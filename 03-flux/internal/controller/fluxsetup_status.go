package controller

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// setupObservation is what one reconciliation of a FluxSetup observed. It is all that the status is computed from.
type setupObservation struct {
	now time.Time
	// notOwned: no Flux owns the FluxSetup.
	notOwned bool
	// cleared: it is suspended, and nothing is left.
	cleared bool
	// waiting is what of another attempt still exists; "" if nothing does.
	waiting string
	// lost: the Job of the attempt was recorded, and is gone.
	lost bool
	// job is the Job of the attempt; nil if there is none.
	job *batchv1.Job
	// pods are those of the Job.
	pods []corev1.Pod
	// ends is what is known of pods that have ended.
	ends jobTerminations
	// failure is why something could not be created or read; nil if nothing failed.
	failure *failure
}

// setupStatus is the status that the observation amounts to, and when to reconcile again for what no event announces; 0
// if there is no such thing. What it takes from the old status is what does not change any more in an attempt: its end,
// that the quorum was reached, and the hash of its files. A broker whose kubelet restarts is not ready for a moment, and
// the work goes on.
func setupStatus(setup *v1alpha1.FluxSetup, observed setupObservation) (v1alpha1.FluxSetupStatus, time.Duration) {
	status := *setup.Status.DeepCopy()
	if !current(setup) {
		status = v1alpha1.FluxSetupStatus{Conditions: slices.DeleteFunc(status.Conditions, ofOneAttempt)}
	}
	status.ObservedGeneration, status.Attempt = setup.Generation, setup.Spec.Attempt
	set := func(condition metav1.Condition) {
		condition.ObservedGeneration = setup.Generation
		condition.LastTransitionTime = metav1.NewTime(observed.now)
		setCondition(&status.Conditions, condition)
	}

	var wait time.Duration
	set(acceptedCondition(observed))
	switch {
	// 1. It is not acted on.
	case observed.notOwned:
		set(configuredCondition(setup, observed))
		set(quorumCondition(setup, observed, nil))
		status.ReadyRanks = 0
	// 2. The attempt is over. What was observed of it stays.
	case over(setup):
		addTermination(&status, observed.ends.leader)
		if setup.Spec.Suspend {
			set(configuredCondition(setup, observed))
			status.LeaderPod = ""
		}
	// 3. It is under way.
	default:
		reached := trueCondition(status.Conditions, v1alpha1.ConditionQuorumReached) != nil || workBegan(setup, observed)
		var end *setupEnd
		end, wait = endOfAttempt(setup, observed, reached)
		set(configuredCondition(setup, observed))
		if reached && (!setup.Spec.Suspend || observed.job != nil) {
			set(quorumReached)
		} else {
			set(quorumCondition(setup, observed, end))
		}
		countRanks(&status, setup, observed, end != nil)
		if end != nil {
			set(metav1.Condition{Type: end.kind, Status: metav1.ConditionTrue, Reason: end.reason, Message: end.message})
			status.ExitCode = end.exitCode
		}
	}
	if observed.job != nil && observed.job.Annotations[annotationConfigHash] != "" {
		status.ConfigHash = observed.job.Annotations[annotationConfigHash]
	}
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = setup.Generation
	}
	return status, wait
}

// ofOneAttempt tells which conditions are removed when a new attempt begins.
func ofOneAttempt(condition metav1.Condition) bool {
	switch condition.Type {
	case v1alpha1.ConditionQuorumReached, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed:
		return true
	}
	return false
}

// acceptedCondition decides the condition Accepted.
func acceptedCondition(observed setupObservation) metav1.Condition {
	if observed.notOwned {
		return notOwned(v1alpha1.ConditionAccepted)
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonOwned, Message: "it belongs to the Flux of its name",
	}
}

func notOwned(kind string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonNotOwned, Message: "no Flux of its name owns it: nothing is created for it. Create a Flux instead",
	}
}

// configuredCondition decides the condition Configured: the first case that holds is the one that is in the way.
func configuredCondition(setup *v1alpha1.FluxSetup, observed setupObservation) metav1.Condition {
	configured := metav1.Condition{Type: v1alpha1.ConditionConfigured, Status: metav1.ConditionFalse}
	switch {
	case observed.notOwned:
		return notOwned(v1alpha1.ConditionConfigured)
	case observed.cleared:
		configured.Reason, configured.Message = v1alpha1.ReasonSuspended, "suspended: nothing is left"
	case observed.failure != nil:
		configured.Reason, configured.Message = observed.failure.reason, observed.failure.message
	case setup.Spec.Suspend:
		configured.Reason, configured.Message = v1alpha1.ReasonSuspending, "waiting for all pods to end"
	case observed.lost:
		configured.Reason, configured.Message = v1alpha1.ReasonJobLost, "the Job of the attempt is gone"
	case observed.waiting != "":
		configured.Reason, configured.Message = v1alpha1.ReasonWaitingForPods, "waiting for what is left of an earlier attempt to end"
	case observed.job == nil || !started(observed.job):
		configured.Reason, configured.Message = v1alpha1.ReasonStarting, "the Job is not started yet"
	default:
		configured.Status = metav1.ConditionTrue
		configured.Reason, configured.Message = v1alpha1.ReasonConfigured, "the Job was started, with all that it needs"
	}
	return configured
}

var quorumReached = metav1.Condition{
	Type: v1alpha1.ConditionQuorumReached, Status: metav1.ConditionTrue,
	Reason: v1alpha1.ReasonQuorumReached, Message: "enough brokers have found each other, and the work has begun",
}

// quorumCondition decides the condition QuorumReached where rank 0 does not say that it is. What keeps the brokers from
// starting is reported as long as it lasts, and not only when it has lasted too long.
func quorumCondition(setup *v1alpha1.FluxSetup, observed setupObservation, end *setupEnd) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionQuorumReached, Status: metav1.ConditionFalse}
	switch {
	case observed.notOwned:
		return notOwned(v1alpha1.ConditionQuorumReached)
	case end != nil && end.kind == v1alpha1.ConditionComplete:
		// A short command is over before the kubelet has looked for the sign that it runs.
		return quorumReached
	case end != nil:
		condition.Reason, condition.Message = v1alpha1.ReasonFinished, "the work ended before it was observed to begin"
	case observed.cleared:
		condition.Reason, condition.Message = v1alpha1.ReasonSuspended, "suspended: nothing is left"
	case setup.Spec.Suspend:
		condition.Reason, condition.Message = v1alpha1.ReasonSuspending, "waiting for all pods to end"
	default:
		condition.Reason, condition.Message = v1alpha1.ReasonStarting, "waiting for enough brokers to find each other"
		if failure := startFailureOf(setup, observed.pods, false); failure != nil {
			condition.Reason, condition.Message = failure.reason, failure.message
		}
	}
	return condition
}

// workBegan tells whether rank 0 says that the quorum was reached: it is ready, or was once.
func workBegan(setup *v1alpha1.FluxSetup, observed setupObservation) bool {
	leader := byRank(observed.pods, setup.Spec.Size)[0]
	if leader == nil {
		return false
	}
	status := brokerStatus(leader)
	return isReady(leader) || (status != nil && ptr.Deref(status.Started, false))
}

// countRanks counts the brokers that are ready, none of an attempt that is over, and names the leader.
func countRanks(status *v1alpha1.FluxSetupStatus, setup *v1alpha1.FluxSetup, observed setupObservation, ended bool) {
	if observed.job == nil && observed.failure != nil && recorded(setup) {
		// The Job could not be read: what was observed before is the best there is.
		return
	}
	status.ReadyRanks = 0
	if observed.job == nil {
		status.LeaderPod = ""
		return
	}
	ranks := byRank(observed.pods, setup.Spec.Size)
	for _, pod := range ranks {
		if !ended && isReady(pod) {
			status.ReadyRanks++
		}
	}
	switch {
	case ranks[0] != nil:
		status.LeaderPod = ranks[0].Name
	case observed.ends.leader != nil:
		status.LeaderPod = observed.ends.leader.pod
	}
}

// onlyProgress tells whether two statuses differ only in how far the start has got.
func onlyProgress(status, before v1alpha1.FluxSetupStatus) bool {
	neutral := func(status v1alpha1.FluxSetupStatus) v1alpha1.FluxSetupStatus {
		status = *status.DeepCopy()
		status.ReadyRanks, status.LeaderPod = 0, ""
		quorum := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionQuorumReached)
		if quorum != nil && quorum.Status == metav1.ConditionFalse {
			quorum.Reason, quorum.Message = "", ""
		}
		return status
	}
	return apiequality.Semantic.DeepEqual(neutral(status), neutral(before))
}

// setupTransitions are the changes of conditions that are logged.
func setupTransitions(before, after v1alpha1.FluxSetupStatus) []transition {
	var all []transition
	for _, is := range after.Conditions {
		was := conditionOf(before.Conditions, is.Type)
		if was.Status != is.Status || was.Reason != is.Reason {
			all = append(all, transition{reason: is.Reason, message: fmt.Sprintf("attempt %d: %s is %s: %s", after.Attempt, is.Type, is.Status, is.Message)})
		}
	}
	return all
}
