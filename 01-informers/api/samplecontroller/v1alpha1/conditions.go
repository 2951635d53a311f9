package v1alpha1

// ConditionReady is True when the Deployment is as the spec wants it and all its replicas are available.
// It is False in all other cases, and its reason says which.
const ConditionReady = "Ready"

// Reasons of ConditionReady.
const (
	// ReasonAvailable means that every replica is up to date and available. The one reason of True.
	ReasonAvailable = "Available"

	// ReasonRollingOut means that the Deployment is as the spec wants it and that its pods are not yet all
	// replaced and available.
	ReasonRollingOut = "RollingOut"

	// ReasonScaledToZero means that no pod is wanted and none is left.
	ReasonScaledToZero = "ScaledToZero"

	// ReasonNameConflict means that a Deployment of the name in the spec is there already and is not the
	// Foo's. It is left as it is.
	ReasonNameConflict = "NameConflict"

	// ReasonApplyFailed means that the API server rejects the Deployment for any other reason; the message
	// is the API server's.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonAPIError means that a request failed for a reason that may pass, for instance because an admission
	// webhook is down. It is retried; the message is that of the first failure, without addresses and times.
	ReasonAPIError = "APIError"

	// ReasonPodsNotCreated means that pods are rejected, for instance by a quota; the message is that of the
	// condition ReplicaFailure of the Deployment.
	ReasonPodsNotCreated = "PodsNotCreated"

	// ReasonProgressDeadlineExceeded means that a rollout makes no progress for longer than the Deployment
	// allows. The controller has no permission to read the pods, which may say why.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// ConditionStalled is True when the controller has given up on the present spec: it tries nothing more
// until the spec changes. It is absent otherwise.
const ConditionStalled = "Stalled"

// ReasonRetriesExhausted is the one reason of ConditionStalled: the API server refused the Deployment as
// often as the controller tries.
const ReasonRetriesExhausted = "RetriesExhausted"
