package controller

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// setupFacts are what one pass saw of the world. They are all that the status is made from.
type setupFacts struct {
	now time.Time
	// unowned: no Flux owns the FluxSetup.
	unowned bool
	// cleared: it is suspended, and nothing is left.
	cleared bool
	// waiting is what of an earlier attempt is still there; "" if nothing is.
	waiting string
	// refused is why something could not be made; nil if all could.
	refused *refusedError
	// lost: there was a Job for the attempt, and it is gone.
	lost bool
	// job is the Job of the attempt; nil if there is none.
	job *batchv1.Job
	// pods are those of the Job.
	pods []corev1.Pod
	// last is what is known of pods that have ended.
	last lastSeen
}

// setupStatus is the status that the facts amount to, and when to look again at what no event announces; 0 if
// there is no such thing. What it takes from the old status is what does not change any more in an attempt: its
// end, and that the quorum was reached. A broker whose kubelet starts again is not ready for a moment, and the
// work goes on.
func setupStatus(setup *v1alpha1.FluxSetup, seen setupFacts) (v1alpha1.FluxSetupStatus, time.Duration) {
	status := *setup.Status.DeepCopy()
	if !current(setup) {
		status = v1alpha1.FluxSetupStatus{Conditions: slices.DeleteFunc(status.Conditions, ofOneAttempt)}
	}
	status.ObservedGeneration, status.Attempt = setup.Generation, setup.Spec.Attempt
	set := func(condition metav1.Condition) {
		condition.Message = clip(condition.Message)
		condition.LastTransitionTime = metav1.NewTime(seen.now)
		apimeta.SetStatusCondition(&status.Conditions, condition)
	}

	var wait time.Duration
	set(acceptedCondition(seen))
	switch {
	// 1. It is not acted on.
	case seen.unowned:
		set(configuredCondition(setup, seen))
		set(quorumCondition(setup, seen, nil))
		status.ReadyRanks = 0
	// 2. The attempt is over. What was seen of it stays.
	case over(setup):
		addLastWords(&status, seen.last.leader)
		if setup.Spec.Suspend {
			set(configuredCondition(setup, seen))
			status.LeaderPod = ""
		}
	// 3. It is under way.
	default:
		reached := trueCondition(status.Conditions, v1alpha1.ConditionQuorumReached) != nil || workBegan(setup, seen)
		var end *setupEnd
		end, wait = endOfAttempt(setup, seen, reached)
		set(configuredCondition(setup, seen))
		if reached && (!setup.Spec.Suspend || seen.job != nil) {
			set(quorumReached)
		} else {
			set(quorumCondition(setup, seen, end))
		}
		countRanks(&status, setup, seen, end != nil)
		if end != nil {
			set(metav1.Condition{Type: end.kind, Status: metav1.ConditionTrue, Reason: end.reason, Message: end.message})
			status.ExitCode = end.exitCode
		} else if seen.refused != nil && seen.refused.untold {
			wait = soonest(wait, refusalRetry)
		}
	}
	if !seen.unowned {
		status.ConfigHash = clusterOf(setup).Hash()
	}
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = setup.Generation
	}
	return status, wait
}

// ofOneAttempt tells which conditions a new attempt begins without.
func ofOneAttempt(condition metav1.Condition) bool {
	switch condition.Type {
	case v1alpha1.ConditionQuorumReached, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed:
		return true
	}
	return false
}

// acceptedCondition decides the condition Accepted.
func acceptedCondition(seen setupFacts) metav1.Condition {
	if seen.unowned {
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
		Reason: v1alpha1.ReasonNotOwned, Message: "no Flux of its name owns it: nothing is made for it. Make a Flux instead",
	}
}

// configuredCondition decides the condition Configured: the first case that holds is the one that stands in the
// way.
func configuredCondition(setup *v1alpha1.FluxSetup, seen setupFacts) metav1.Condition {
	configured := metav1.Condition{Type: v1alpha1.ConditionConfigured, Status: metav1.ConditionFalse}
	switch {
	case seen.unowned:
		return notOwned(v1alpha1.ConditionConfigured)
	case seen.cleared:
		configured.Reason, configured.Message = v1alpha1.ReasonSuspended, "suspended: nothing is left"
	case setup.Spec.Suspend:
		configured.Reason, configured.Message = v1alpha1.ReasonSuspending, "waiting for all pods to end"
	case seen.lost:
		configured.Reason, configured.Message = v1alpha1.ReasonJobLost, "Job "+setup.Name+" is gone"
	case seen.refused != nil:
		configured.Reason, configured.Message = seen.refused.reason, seen.refused.message
	case seen.waiting != "":
		configured.Reason, configured.Message = v1alpha1.ReasonWaitingForPods, "waiting for what is left of an earlier attempt to end"
	case seen.job == nil:
		configured.Reason, configured.Message = v1alpha1.ReasonStarting, "there is no Job yet"
	default:
		configured.Status = metav1.ConditionTrue
		configured.Reason, configured.Message = v1alpha1.ReasonConfigured, "Secret, ConfigMap, Service and Job are there"
	}
	return configured
}

var quorumReached = metav1.Condition{
	Type: v1alpha1.ConditionQuorumReached, Status: metav1.ConditionTrue,
	Reason: v1alpha1.ReasonQuorumReached, Message: "enough brokers have found each other, and the work has begun",
}

// quorumCondition decides the condition QuorumReached where rank 0 does not say that it is. A trouble that keeps
// the brokers from starting is told as long as it lasts, and not only when it has lasted too long.
func quorumCondition(setup *v1alpha1.FluxSetup, seen setupFacts, end *setupEnd) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionQuorumReached, Status: metav1.ConditionFalse}
	switch {
	case seen.unowned:
		return notOwned(v1alpha1.ConditionQuorumReached)
	case end != nil && end.kind == v1alpha1.ConditionComplete:
		// A short command is over before the kubelet has looked for the sign that it runs.
		return quorumReached
	case end != nil:
		condition.Reason, condition.Message = v1alpha1.ReasonFinished, "the work ended before it was seen to begin"
	case seen.cleared:
		condition.Reason, condition.Message = v1alpha1.ReasonSuspended, "suspended: nothing is left"
	case setup.Spec.Suspend:
		condition.Reason, condition.Message = v1alpha1.ReasonSuspending, "waiting for all pods to end"
	default:
		condition.Reason, condition.Message = v1alpha1.ReasonStarting, "waiting for enough brokers to find each other"
		if trouble := startTrouble(setup, seen.pods, false); trouble != nil {
			condition.Reason, condition.Message = trouble.reason, trouble.message
		}
	}
	return condition
}

// workBegan tells whether rank 0 says that the quorum was reached: it is ready, or was once.
func workBegan(setup *v1alpha1.FluxSetup, seen setupFacts) bool {
	leader := byRank(seen.pods, setup.Spec.Size)[0]
	if leader == nil {
		return false
	}
	status := brokerStatus(leader)
	return isReady(leader) || (status != nil && ptr.Deref(status.Started, false))
}

// countRanks counts the brokers that are ready, none of an attempt that is over, and names the leader.
func countRanks(status *v1alpha1.FluxSetupStatus, setup *v1alpha1.FluxSetup, seen setupFacts, ended bool) {
	status.ReadyRanks = 0
	if seen.job == nil {
		status.LeaderPod = ""
		return
	}
	ranks := byRank(seen.pods, setup.Spec.Size)
	for _, pod := range ranks {
		if !ended && isReady(pod) {
			status.ReadyRanks++
		}
	}
	switch {
	case ranks[0] != nil:
		status.LeaderPod = ranks[0].Name
	case seen.last.leader != nil:
		status.LeaderPod = seen.last.leader.pod
	}
}

// onlyProgress tells whether two statuses differ in nothing but how far the start has got.
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

// maxMessage is how long, in bytes, a condition's message may be: no page of a log, and no object that the API
// server has not liked.
const maxMessage = 8 << 10

func clip(message string) string {
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(message, "\uFFFD")
}
