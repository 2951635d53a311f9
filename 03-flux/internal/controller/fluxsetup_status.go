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

// setupObservation is what one reconciliation of a FluxSetup observed. The status is computed from it alone.
type setupObservation struct {
	now time.Time
	// since is when we first read that the attempt was launched, or its Job started; zero if neither was.
	since time.Time
	// notOwned: no Flux owns the FluxSetup.
	notOwned bool
	// cleared: it is suspended, and no dependents are left.
	cleared bool
	// waiting describes what still exists of another attempt; "" if nothing does.
	waiting string
	// lost: the Job of the attempt was recorded, and another client has deleted it or is deleting it.
	lost bool
	// job is the Job of the attempt; nil if there is none.
	job *batchv1.Job
	// pods are the pods of the Job.
	pods []corev1.Pod
	// ends is what is known of pods that have ended.
	ends jobTerminations
	// failure is why something could not be created or read; nil if nothing failed.
	failure *failure
}

// setupStatus computes the status from the observation. It also returns when to reconcile again for what no event
// triggers; 0 if there is no need to. It keeps those parts of the old status that do not change any more in an attempt:
// its end, that the quorum was reached, and the hash of its files. A broker can be briefly not ready, for example when
// its kubelet restarts, while the work continues.
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
	// 1. No Flux owns it, so nothing is done for it. What was observed of an attempt that has ended stays.
	case observed.notOwned && attemptEnded(setup):
	case observed.notOwned:
		set(configuredCondition(setup, observed))
		set(quorumCondition(setup, observed, nil))
		status.ReadyRanks = 0
	// 2. The attempt has ended. What was observed stays, except for what prevents the deletion of its dependents.
	case attemptEnded(setup):
		addTermination(&status, observed.ends.leader)
		if setup.Spec.Suspend {
			status.LeaderPod = ""
		}
		if changesAfterTheEnd(setup, observed) {
			set(configuredCondition(setup, observed))
		}
	// 3. The attempt is active.
	default:
		reached := workBegan(setup, observed)
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
	if observed.job != nil {
		status.ConfigHash = observed.job.Annotations[annotationConfigHash]
	}
	observeGeneration(status.Conditions, setup.Generation, v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured,
		v1alpha1.ConditionQuorumReached, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed)
	return status, wait
}

// changesAfterTheEnd reports whether the condition Configured of an attempt that has ended is computed again: its
// dependents are to be deleted, or their deletion fails or has failed before.
func changesAfterTheEnd(setup *v1alpha1.FluxSetup, observed setupObservation) bool {
	return setup.Spec.Suspend || observed.failure != nil || needsAttention(conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured))
}

// ofOneAttempt reports whether a condition is removed when a new attempt begins.
func ofOneAttempt(condition metav1.Condition) bool {
	switch condition.Type {
	case v1alpha1.ConditionQuorumReached, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed:
		return true
	}
	return false
}

// acceptedCondition computes the condition Accepted.
func acceptedCondition(observed setupObservation) metav1.Condition {
	if observed.notOwned {
		return notOwned(v1alpha1.ConditionAccepted)
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonOwned, Message: "the Flux of the same name owns it",
	}
}

func notOwned(kind string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonNotOwned, Message: "no Flux of the same name owns it: nothing is created for it. Create a Flux instead",
	}
}

// configuredCondition computes the condition Configured: the first case that applies is reported.
func configuredCondition(setup *v1alpha1.FluxSetup, observed setupObservation) metav1.Condition {
	configured := metav1.Condition{Type: v1alpha1.ConditionConfigured, Status: metav1.ConditionFalse}
	switch {
	case observed.notOwned:
		return notOwned(v1alpha1.ConditionConfigured)
	case observed.cleared:
		configured.Reason, configured.Message = v1alpha1.ReasonSuspended, "suspended: all dependents are deleted"
	case observed.failure != nil:
		configured.Reason, configured.Message = observed.failure.reason, observed.failure.message
	case setup.Spec.Suspend:
		configured.Reason, configured.Message = v1alpha1.ReasonSuspending, "waiting for all pods to terminate"
	case observed.lost:
		configured.Reason, configured.Message = v1alpha1.ReasonJobLost, "the Job of the attempt was deleted"
	case observed.waiting != "":
		configured.Reason, configured.Message = v1alpha1.ReasonWaitingForPods, "waiting for the objects of an earlier attempt to be deleted"
	case attemptEnded(setup) && (observed.job == nil || !kept(setup, observed.job)):
		configured.Reason, configured.Message = v1alpha1.ReasonFinished, "the attempt has ended"
	case observed.job == nil || !started(observed.job):
		configured.Reason, configured.Message = v1alpha1.ReasonStarting, "the Job is not started yet"
	default:
		configured.Status = metav1.ConditionTrue
		configured.Reason, configured.Message = v1alpha1.ReasonConfigured, "the Job was started"
	}
	return configured
}

var quorumReached = metav1.Condition{
	Type: v1alpha1.ConditionQuorumReached, Status: metav1.ConditionTrue,
	Reason: v1alpha1.ReasonQuorumReached, Message: "enough brokers are connected, and the command has started",
}

// quorumCondition computes the condition QuorumReached while rank 0 is not ready. What prevents brokers from starting
// is reported as long as it lasts, and not only after startupTimeoutSeconds.
func quorumCondition(setup *v1alpha1.FluxSetup, observed setupObservation, end *setupEnd) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionQuorumReached, Status: metav1.ConditionFalse}
	switch {
	case observed.notOwned && current(setup) && trueCondition(setup.Status.Conditions, v1alpha1.ConditionQuorumReached) != nil:
		return quorumReached
	case observed.notOwned:
		return notOwned(v1alpha1.ConditionQuorumReached)
	case end != nil && end.kind == v1alpha1.ConditionComplete:
		// A short command can end before the kubelet has probed the container.
		return quorumReached
	case end != nil:
		condition.Reason, condition.Message = v1alpha1.ReasonFinished, "the command ended before its start was observed"
	case observed.cleared:
		condition.Reason, condition.Message = v1alpha1.ReasonSuspended, "suspended: all dependents are deleted"
	case setup.Spec.Suspend:
		condition.Reason, condition.Message = v1alpha1.ReasonSuspending, "waiting for all pods to terminate"
	default:
		condition.Reason, condition.Message = v1alpha1.ReasonStarting, "waiting for enough brokers to connect"
		if failure := startFailureOf(setup, observed, false); failure != nil {
			condition.Reason, condition.Message = failure.reason, failure.message
		}
	}
	return condition
}

// failing reports whether this observation makes the attempt Failed.
func failing(setup *v1alpha1.FluxSetup, observed setupObservation) bool {
	if attemptEnded(setup) {
		return false
	}
	end, _ := endOfAttempt(setup, observed, workBegan(setup, observed))
	return end != nil && end.kind == v1alpha1.ConditionFailed
}

// lacksLeader reports whether the pod of rank 0 was observed in an active attempt, and is not among those that were read.
func lacksLeader(setup *v1alpha1.FluxSetup, observed setupObservation) bool {
	return current(setup) && !attemptEnded(setup) && setup.Status.LeaderPod != "" && byRank(observed.pods, setup.Spec.Size)[0] == nil
}

// workBegan reports whether the quorum of the attempt was reached: rank 0 is ready, or was ready before.
func workBegan(setup *v1alpha1.FluxSetup, observed setupObservation) bool {
	if current(setup) && trueCondition(setup.Status.Conditions, v1alpha1.ConditionQuorumReached) != nil {
		return true
	}
	leader := byRank(observed.pods, setup.Spec.Size)[0]
	if leader == nil {
		return false
	}
	status := brokerStatus(leader)
	return isReady(leader) || (status != nil && ptr.Deref(status.Started, false))
}

// countRanks sets the number of ready brokers, which is 0 for an attempt that has ended, and the leader's pod.
func countRanks(status *v1alpha1.FluxSetupStatus, setup *v1alpha1.FluxSetup, observed setupObservation, ended bool) {
	if observed.job == nil && observed.failure != nil && jobRecorded(setup) {
		// The Job could not be read: keep what was observed before.
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
	status.LeaderPod = firstLeader(setup, observed)
	if status.LeaderPod == "" && ranks[0] != nil {
		status.LeaderPod = ranks[0].Name
	}
}

// onlyProgress reports whether two statuses differ only in the progress of the start. The name of the leader's pod is not part
// of that: after a restart of the operator only the status has it, and only it shows that the command has started again.
func onlyProgress(status, before v1alpha1.FluxSetupStatus) bool {
	neutral := func(status v1alpha1.FluxSetupStatus) v1alpha1.FluxSetupStatus {
		status = *status.DeepCopy()
		status.ReadyRanks = 0
		quorum := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionQuorumReached)
		if quorum != nil && quorum.Status == metav1.ConditionFalse {
			quorum.Reason, quorum.Message = "", ""
		}
		return status
	}
	return apiequality.Semantic.DeepEqual(neutral(status), neutral(before))
}

// setupTransitions are the changes of conditions that are logged. They have no Event type, because there is no recorder
// for them.
func setupTransitions(before, after v1alpha1.FluxSetupStatus) []transition {
	var all []transition
	for _, is := range after.Conditions {
		was := conditionOf(before.Conditions, is.Type)
		if was.Status != is.Status || was.Reason != is.Reason {
			is.Message = fmt.Sprintf("attempt %d: %s", after.Attempt, is.Message)
			all = append(all, transition{Condition: is})
		}
	}
	return all
}
