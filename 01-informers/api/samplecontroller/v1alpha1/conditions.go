package v1alpha1

// ConditionReady is True when the Deployment is as the spec describes it and all its replicas are available.
// It is False in all other cases, and its reason says which.
const ConditionReady = "Ready"

// Reasons of ConditionReady.
const (
	// ReasonAvailable means that every replica is up to date and available. It is the only reason with which Ready is True.
	ReasonAvailable = "Available"

	// ReasonRollingOut means that the Deployment is as the spec describes it and that the pods are not yet all replaced and
	// available.
	ReasonRollingOut = "RollingOut"

	// ReasonScaledToZero means that no pod is desired and none is left.
	ReasonScaledToZero = "ScaledToZero"

	// ReasonNameConflict means that a Deployment of the name in the spec exists and is not owned by the Foo. It is left
	// unchanged.
	ReasonNameConflict = "NameConflict"

	// ReasonApplyFailed means that the API server rejects the Deployment for any other reason; the message is the API server's.
	// Or an admission policy or webhook changes what is applied.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonAPIError means that a request failed for a reason that may be temporary, for instance because an admission
	// webhook is down. It is retried; the message is that of the first failure, without addresses and times.
	ReasonAPIError = "APIError"

	// ReasonPodsNotCreated means that pods are rejected, for instance by a quota; the message is that of the
	// condition ReplicaFailure of the Deployment.
	ReasonPodsNotCreated = "PodsNotCreated"

	// ReasonProgressDeadlineExceeded means that a rollout makes no progress for longer than the Deployment
	// allows. The controller has no permission to read the pods, which may say why.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// ConditionStalled is True when the API server has rejected the Deployment as often as the controller tries: it is not tried
// again until the spec changes. The condition is absent otherwise, also when another writer has made the Deployment as the
// spec describes it.
const ConditionStalled = "Stalled"

// ReasonRetriesExhausted is the one reason of ConditionStalled.
const ReasonRetriesExhausted = "RetriesExhausted"
