package v1alpha1

import apimeta "k8s.io/apimachinery/pkg/api/meta"

// Conditions of a Goop.
const (
	// ConditionRunning is True while workers run, or are about to run. Its reason is what users should know first: that
	// the workers run, what prevents some workers from running, what the Goop waits for, or that it has ended.
	ConditionRunning = "Running"

	// ConditionSuspended is True when spec.suspend is set, no unfinished worker exists, and none is created any more.
	ConditionSuspended = "Suspended"

	// ConditionComplete is True when every worker has exited with 0. It is terminal: the operator starts no worker after it.
	ConditionComplete = "Complete"

	// ConditionFailed is True when the Goop has ended in any other way. It is terminal: the operator starts no worker after it.
	ConditionFailed = "Failed"
)

// Reasons of the conditions.
const (
	// ReasonWorking means that workers run, or are about to run.
	ReasonWorking = "Working"

	// ReasonFinished means that the Goop has ended: Complete and Failed say how.
	ReasonFinished = "Finished"

	// ReasonSucceeded means that every worker has exited with 0.
	ReasonSucceeded = "Succeeded"

	// ReasonWorkersFailed means that at least one worker did not succeed in any of its attempts.
	ReasonWorkersFailed = "WorkersFailed"

	// ReasonDeadlineExceeded means that activeDeadlineSeconds was exceeded.
	ReasonDeadlineExceeded = "DeadlineExceeded"

	// ReasonSuspending means that suspend is set, and that workers are still terminating, or may still be created.
	ReasonSuspending = "Suspending"

	// ReasonSuspended means that suspend is set, and that no unfinished worker exists.
	ReasonSuspended = "Suspended"

	// ReasonResumed means that suspend was set, and no longer is.
	ReasonResumed = "Resumed"

	// ReasonNoEligibleNodes means that no node matches nodeSelector and has only taints that are tolerated. It
	// is resolved when such a node joins.
	ReasonNoEligibleNodes = "NoEligibleNodes"

	// ReasonTooManyRounds means that jobCount is more than MaxRounds workers on each eligible node. It is
	// resolved when nodes join.
	ReasonTooManyRounds = "TooManyRounds"

	// ReasonHostAccessNotAllowed means that spec.host requests access to the node, and that the operator was not
	// started with --allow-host-access.
	ReasonHostAccessNotAllowed = "HostAccessNotAllowed"

	// ReasonNameConflict means that an object of a name that the Goop needs exists and is not owned by the Goop. The
	// operator does not change it.
	ReasonNameConflict = "NameConflict"

	// ReasonImageNotPulled means that a node could not pull an image; the message is the kubelet's.
	ReasonImageNotPulled = "ImageNotPulled"

	// ReasonUnschedulable means that a worker cannot be scheduled on its node; the message is the scheduler's.
	ReasonUnschedulable = "Unschedulable"

	// ReasonWorkersNotStarted means that the kubelet cannot start a worker for another reason, or has rejected or evicted its
	// pod; the message is the kubelet's.
	ReasonWorkersNotStarted = "WorkersNotStarted"

	// ReasonPodsNotCreated means that workers should run, but that no pod is created for them. The Events of the DaemonSet say
	// why: for example a quota, or the Pod Security Standard of the namespace.
	ReasonPodsNotCreated = "PodsNotCreated"

	// ReasonRecordUnreadable means that a user has changed the record of the finished workers so that it cannot be read. No
	// worker starts until it can: otherwise a finished worker might run again.
	ReasonRecordUnreadable = "RecordUnreadable"

	// ReasonRecordLost means that a ConfigMap of the record was deleted: it is not known which workers have finished, and none
	// of them is started again.
	ReasonRecordLost = "RecordLost"

	// ReasonApplyFailed means that the API server rejected an object for any other reason; the message is the API
	// server's.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonAPIError means that a request to the API server failed and may succeed when it is retried: a time-out, no
	// connection, an admission webhook that is down. The operator retries it until it succeeds.
	ReasonAPIError = "APIError"

	// ReasonDeleting means that the Goop is being deleted without a cleanup: its workers are terminated, none starts again, and
	// another controller's finalizer blocks the deletion.
	ReasonDeleting = "Deleting"

	// ReasonCleaningUp means that the Goop is being deleted: its workers are terminated, and then cleanupCmd runs on the nodes
	// where workers ran.
	ReasonCleaningUp = "CleaningUp"

	// ReasonCleanedUp means that cleanupCmd has exited with 0 on every node where workers ran. The Goop is removed.
	ReasonCleanedUp = "CleanedUp"

	// ReasonCleanupIncomplete means that cleanupCmd has not exited with 0 on some nodes, which the message names. The
	// Goop is removed nevertheless.
	ReasonCleanupIncomplete = "CleanupIncomplete"
)

// Ended reports whether the Goop is Complete or Failed. Both are terminal: the operator starts no worker again. If the pod of
// a finished worker is evicted, the DaemonSet controller may replace it before the operator prevents that.
func (g *Goop) Ended() bool {
	return apimeta.IsStatusConditionTrue(g.Status.Conditions, ConditionComplete) ||
		apimeta.IsStatusConditionTrue(g.Status.Conditions, ConditionFailed)
}
