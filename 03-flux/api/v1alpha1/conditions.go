package v1alpha1

// Conditions of a Flux.
const (
	// ConditionSetupReady is True when every object that the brokers need exists.
	ConditionSetupReady = "SetupReady"

	// ConditionRunning is True while the command runs: from the quorum until the Flux is Complete or Failed.
	ConditionRunning = "Running"

	// ConditionSuspended is True when spec.suspend is set and no pod exists. A pod that has ended does not count if its Job was
	// deleted and the pod was orphaned.
	ConditionSuspended = "Suspended"

	// ConditionRestarting is True from a failure until the quorum of the next attempt is reached.
	ConditionRestarting = "Restarting"
)

// Conditions of a FluxSetup.
const (
	// ConditionAccepted is True when a Flux of the same name owns the FluxSetup. Only then does the operator act on it.
	ConditionAccepted = "Accepted"

	// ConditionConfigured is True when the Job of the attempt was started, and its ConfigMap and the Service are in their
	// desired state. Whether the Secret still exists is not observed.
	ConditionConfigured = "Configured"

	// ConditionQuorumReached is True once enough brokers are connected and the command has started.
	ConditionQuorumReached = "QuorumReached"
)

// Conditions of both kinds. Both are terminal: after one of them nothing of a Flux runs again, and nothing of the same
// attempt of a FluxSetup.
const (
	// ConditionComplete is True when the command has exited with 0.
	ConditionComplete = "Complete"

	// ConditionFailed is True when the Flux has ended in any other way.
	ConditionFailed = "Failed"
)

// Reasons of a condition that is True, or not True yet.
const (
	// ReasonConfigured means that every object that the brokers need exists.
	ReasonConfigured = "Configured"

	// ReasonOwned means that its Flux owns the FluxSetup.
	ReasonOwned = "Owned"

	// ReasonStarting means that fewer brokers than the quorum are connected.
	ReasonStarting = "Starting"

	// ReasonQuorumReached means that enough brokers are connected.
	ReasonQuorumReached = "QuorumReached"

	// ReasonFinished means that the Flux has ended: Complete and Failed say how.
	ReasonFinished = "Finished"

	// ReasonCommandSucceeded means that the command has exited with 0.
	ReasonCommandSucceeded = "CommandSucceeded"

	// ReasonSuspending means that suspend is set, and that pods are still terminating.
	ReasonSuspending = "Suspending"

	// ReasonSuspended means that suspend is set, and that no pod exists.
	ReasonSuspended = "Suspended"

	// ReasonNotSuspended means that suspend is not set.
	ReasonNotSuspended = "NotSuspended"

	// ReasonRestarting means that all brokers are restarted after a failure.
	ReasonRestarting = "Restarting"

	// ReasonNotRestarting means that no restart is in progress.
	ReasonNotRestarting = "NotRestarting"

	// ReasonDeleting means that the Flux is being deleted: its brokers are terminated, none starts again, and another controller's
	// finalizer blocks the deletion.
	ReasonDeleting = "Deleting"

	// ReasonWaitingForPods means that pods of the previous attempt must be deleted first.
	ReasonWaitingForPods = "WaitingForPods"
)

// Reasons of a problem: of Accepted, Configured and SetupReady while the problem may still be resolved, of Failed when it
// was not.
const (
	// ReasonNotOwned means that no Flux of the same name owns the FluxSetup. The operator creates nothing for it.
	ReasonNotOwned = "NotOwned"

	// ReasonNameConflict means that an object of the same name exists and has a different owner, or none. The operator does
	// not change it.
	ReasonNameConflict = "NameConflict"

	// ReasonApplyFailed means that the API server rejected an object, or a deletion; the message is the API server's. Or an
	// admission policy or webhook changes what is applied of the Service; the message has the field.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonAPIError means that a request to the API server failed and may succeed when it is retried: a time-out, no
	// connection, an admission webhook that is down. The operator retries it until it succeeds.
	ReasonAPIError = "APIError"

	// ReasonSetupLost means that the FluxSetup was deleted. The operator never deletes one.
	ReasonSetupLost = "SetupLost"

	// ReasonSetupChanged means that another writer has suspended the FluxSetup, or raised its attempt.
	ReasonSetupChanged = "SetupChanged"

	// ReasonJobLost means that the Job of an attempt was deleted although only the operator should delete it.
	ReasonJobLost = "JobLost"

	// ReasonJobChanged means that another writer, an admission policy included, has suspended the Job of an attempt, ended its
	// suspension, or changed its parallelism, its backoffLimit, or another field that decides how often the command runs; or
	// that the pod of rank 0 was replaced because another writer has removed its finalizer.
	ReasonJobChanged = "JobChanged"

	// ReasonConfigLost means that the ConfigMap or the Secret of an attempt was deleted. It is not created again: other
	// brokers may have read another content.
	ReasonConfigLost = "ConfigLost"

	// ReasonTooManyAttempts means that a Flux has had the maximum number of attempts (MaxAttempts).
	ReasonTooManyAttempts = "TooManyAttempts"

	// ReasonPodsRemain means that pods of an earlier attempt were not deleted within the start-up time-out.
	ReasonPodsRemain = "PodsRemain"

	// ReasonImageNotPulled means that a node could not pull the image; the message is the kubelet's.
	ReasonImageNotPulled = "ImageNotPulled"

	// ReasonUnschedulable means that a pod cannot be scheduled; the message is the scheduler's.
	ReasonUnschedulable = "Unschedulable"

	// ReasonPodsNotCreated means that the Job runs, but that no pod is created for a rank. The Events of the Job say why, for
	// instance a quota or the Pod Security Standard of the namespace.
	ReasonPodsNotCreated = "PodsNotCreated"

	// ReasonPodNotStarted means that a container does not start; the message is the kubelet's.
	ReasonPodNotStarted = "PodNotStarted"

	// ReasonQuorumNotReached means that the brokers run, and that too few of them connected in time.
	ReasonQuorumNotReached = "QuorumNotReached"

	// ReasonCommandFailed means that rank 0 exited with an exit code other than 0.
	ReasonCommandFailed = "CommandFailed"

	// ReasonBrokerFailed means that a broker other than rank 0 was lost, and with it the Flux.
	ReasonBrokerFailed = "BrokerFailed"

	// ReasonDeadlineExceeded means that activeDeadlineSeconds was exceeded.
	ReasonDeadlineExceeded = "DeadlineExceeded"
)

// LogUnavailable is in the message of Failed in place of the end of the leader's output, if that was not observed.
const LogUnavailable = "LogUnavailable"
