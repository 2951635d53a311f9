package v1alpha1

// Conditions of a Flux.
const (
	// ConditionSetupReady is True when everything that the brokers need is there.
	ConditionSetupReady = "SetupReady"

	// ConditionRunning is True while the command runs: the quorum is reached, and the end is not.
	ConditionRunning = "Running"

	// ConditionSuspended is True when spec.suspend is set and no pod is left.
	ConditionSuspended = "Suspended"

	// ConditionRestarting is True from a failure until the quorum of the next attempt is reached.
	ConditionRestarting = "Restarting"
)

// Conditions of a FluxSetup.
const (
	// ConditionAccepted is True when the FluxSetup belongs to a Flux of its name, so that it is acted on.
	ConditionAccepted = "Accepted"

	// ConditionConfigured is True when the Job of the attempt was started, and its ConfigMap and the Service are as they
	// should be. That the Secret still exists is not watched.
	ConditionConfigured = "Configured"

	// ConditionQuorumReached is True once enough brokers have found each other and the work has begun.
	ConditionQuorumReached = "QuorumReached"
)

// Conditions of both kinds. Either is the end: nothing of a Flux runs again after it, and of a FluxSetup nothing
// of the same attempt.
const (
	// ConditionComplete is True when the command has ended with 0.
	ConditionComplete = "Complete"

	// ConditionFailed is True when the work has ended in any other way.
	ConditionFailed = "Failed"
)

// Reasons of a condition that is True and of one that is not yet.
const (
	// ReasonConfigured means that everything that the brokers need is there.
	ReasonConfigured = "Configured"

	// ReasonOwned means that the FluxSetup belongs to its Flux.
	ReasonOwned = "Owned"

	// ReasonStarting means that brokers are still to come.
	ReasonStarting = "Starting"

	// ReasonQuorumReached means that enough brokers have found each other.
	ReasonQuorumReached = "QuorumReached"

	// ReasonFinished means that the work is over: Complete and Failed say how.
	ReasonFinished = "Finished"

	// ReasonCommandSucceeded means that the command has ended with 0.
	ReasonCommandSucceeded = "CommandSucceeded"

	// ReasonSuspending means that suspend is set, and that pods are still about to end.
	ReasonSuspending = "Suspending"

	// ReasonSuspended means that suspend is set, and that no pod is left.
	ReasonSuspended = "Suspended"

	// ReasonNotSuspended means that suspend is not set.
	ReasonNotSuspended = "NotSuspended"

	// ReasonRestarting means that all brokers are started again after a failure.
	ReasonRestarting = "Restarting"

	// ReasonNotRestarting means that nothing is under way after a failure.
	ReasonNotRestarting = "NotRestarting"

	// ReasonWaitingForPods means that pods of the attempt before must be gone first.
	ReasonWaitingForPods = "WaitingForPods"
)

// Reasons for what is not as it should be: of Accepted, Configured and SetupReady while it may still heal, of
// Failed when it did not.
const (
	// ReasonNotOwned means that no Flux of the same name owns the FluxSetup. Nothing is made for it.
	ReasonNotOwned = "NotOwned"

	// ReasonNameConflict means that an object of the name is there already and is not ours. It is left as
	// it is.
	ReasonNameConflict = "NameConflict"

	// ReasonApplyFailed means that the API server rejected an object; the message is the API server's.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonAPIError means that a request to the API server failed in a way that may have passed at the next attempt: a
	// time-out, no connection, an admission webhook that is down. It is tried again until it succeeds.
	ReasonAPIError = "APIError"

	// ReasonSetupLost means that the FluxSetup is gone although only the operator should delete it.
	ReasonSetupLost = "SetupLost"

	// ReasonJobLost means that the Job of an attempt is gone although only the operator should delete it.
	ReasonJobLost = "JobLost"

	// ReasonJobChanged means that another writer has suspended the Job of an attempt, or changed its parallelism.
	ReasonJobChanged = "JobChanged"

	// ReasonConfigLost means that the ConfigMap or the Secret of an attempt is gone, and is not created again: other
	// brokers may have read another content.
	ReasonConfigLost = "ConfigLost"

	// ReasonTooManyAttempts means that a Flux has had as many attempts as there can be (MaxAttempts).
	ReasonTooManyAttempts = "TooManyAttempts"

	// ReasonPodsRemain means that pods of an earlier attempt were not gone within the start-up time.
	ReasonPodsRemain = "PodsRemain"

	// ReasonImageNotPulled means that a node could not pull the image; the message is the kubelet's.
	ReasonImageNotPulled = "ImageNotPulled"

	// ReasonUnschedulable means that no node takes a pod; the message is the scheduler's.
	ReasonUnschedulable = "Unschedulable"

	// ReasonPodNotStarted means that a container does not start, or a pod is not there; the message is the
	// kubelet's or the Job controller's.
	ReasonPodNotStarted = "PodNotStarted"

	// ReasonQuorumNotReached means that all brokers that can run do, and that too few found each other in time.
	ReasonQuorumNotReached = "QuorumNotReached"

	// ReasonCommandFailed means that rank 0 ended with an exit code that is not 0.
	ReasonCommandFailed = "CommandFailed"

	// ReasonBrokerFailed means that a broker other than rank 0 was lost, and the work with it.
	ReasonBrokerFailed = "BrokerFailed"

	// ReasonDeadlineExceeded means that activeDeadlineSeconds are over.
	ReasonDeadlineExceeded = "DeadlineExceeded"
)

// LogUnavailable stands in the message of Failed where the end of the leader's output should be, if it was not observed.
const LogUnavailable = "LogUnavailable"
