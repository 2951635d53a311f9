package v1alpha1

import apimeta "k8s.io/apimachinery/pkg/api/meta"

// Conditions of a Goop.
const (
	// ConditionRunning is True while workers are at work, or are about to be. Its reason is what users should know
	// first: that all is well, what stands in the way of some workers while others are at work, what the work waits
	// for, or that it is over.
	ConditionRunning = "Running"

	// ConditionSuspended is True when spec.suspend is set and no unfinished worker is left.
	ConditionSuspended = "Suspended"

	// ConditionComplete is True when every worker has ended with 0. It is an end: no work runs after it.
	ConditionComplete = "Complete"

	// ConditionFailed is True when the work has ended in any other way. It is an end: no work runs after it.
	ConditionFailed = "Failed"
)

// Reasons of the conditions.
const (
	// ReasonWorking means that workers are at work, or are about to be.
	ReasonWorking = "Working"

	// ReasonFinished means that the work is over: Complete and Failed say how.
	ReasonFinished = "Finished"

	// ReasonSucceeded means that every worker has ended with 0.
	ReasonSucceeded = "Succeeded"

	// ReasonWorkersFailed means that at least one worker has not ended with 0 in all its tries.
	ReasonWorkersFailed = "WorkersFailed"

	// ReasonDeadlineExceeded means that activeDeadlineSeconds were over before the work was.
	ReasonDeadlineExceeded = "DeadlineExceeded"

	// ReasonSuspending means that suspend is set, and that workers are still about to end.
	ReasonSuspending = "Suspending"

	// ReasonSuspended means that suspend is set, and that no unfinished worker is left.
	ReasonSuspended = "Suspended"

	// ReasonResumed means that suspend was set, and no longer is.
	ReasonResumed = "Resumed"

	// ReasonNoEligibleNodes means that no node has the labels of nodeSelector and only taints that are tolerated.
	// It heals when one comes.
	ReasonNoEligibleNodes = "NoEligibleNodes"

	// ReasonTooManyRounds means that jobCount is more than MaxRounds workers on each eligible node. It heals when
	// nodes come.
	ReasonTooManyRounds = "TooManyRounds"

	// ReasonHostAccessRefused means that spec.host asks for what the operator does not give: it was not started
	// with --allow-host-access.
	ReasonHostAccessRefused = "HostAccessRefused"

	// ReasonNameConflict means that an object of a name that the Goop needs is there already and is not the
	// Goop's. It is left as it is.
	ReasonNameConflict = "NameConflict"

	// ReasonImageNotPulled means that a node could not pull an image; the message is the kubelet's.
	ReasonImageNotPulled = "ImageNotPulled"

	// ReasonUnschedulable means that the scheduler has no room for a worker on its node; the message is the scheduler's.
	ReasonUnschedulable = "Unschedulable"

	// ReasonWorkersNotStarted means that the kubelet cannot start a worker for another reason; the message is the
	// kubelet's.
	ReasonWorkersNotStarted = "WorkersNotStarted"

	// ReasonPodsNotCreated means that nothing is at work though there is work to be done, and no pod is created for it.
	// The Events of the DaemonSet say why: for instance a quota, or the Pod Security level of the namespace.
	ReasonPodsNotCreated = "PodsNotCreated"

	// ReasonRecordUnreadable means that a user has changed the record of what is done so that it cannot be read.
	// Nothing is done until it can: work might run again.
	ReasonRecordUnreadable = "RecordUnreadable"

	// ReasonRecordLost means that a ConfigMap of the record is gone: which workers have finished is not known any more,
	// and none of them runs again.
	ReasonRecordLost = "RecordLost"

	// ReasonApplyFailed means that the API server rejected an object for any other reason; the message is the API
	// server's.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonAPIError means that a request to the API server failed in a way that may pass, for instance a time-out or
	// an admission webhook that is down. It is repeated until it succeeds.
	ReasonAPIError = "APIError"

	// ReasonCleaningUp means that the Goop is being deleted: its workers end, and then cleanupCmd runs on the nodes
	// where work ran.
	ReasonCleaningUp = "CleaningUp"

	// ReasonCleanedUp means that cleanupCmd has ended with 0 on every node where work ran. The Goop goes.
	ReasonCleanedUp = "CleanedUp"

	// ReasonCleanupIncomplete means that on some nodes cleanupCmd has not ended with 0: the message names them. The
	// Goop goes all the same.
	ReasonCleanupIncomplete = "CleanupIncomplete"
)

// Ended tells whether the work has come to its end, Complete or Failed. That is a latch: none of it is run again.
func (g *Goop) Ended() bool {
	return apimeta.IsStatusConditionTrue(g.Status.Conditions, ConditionComplete) ||
		apimeta.IsStatusConditionTrue(g.Status.Conditions, ConditionFailed)
}
