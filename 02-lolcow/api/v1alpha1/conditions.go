package v1alpha1

// ConditionReady is True when every replica serves the greeting of the spec on the port of the
// spec. It is False in all other cases, and its reason says which.
const ConditionReady = "Ready"

// Reasons of ConditionReady.
const (
	// ReasonServing means that every replica is up to date and available. It is the only reason with which Ready is True.
	ReasonServing = "Serving"

	// ReasonRollingOut means that the Deployment and the Service are as the spec describes them and that the
	// pods are not yet all replaced and available.
	ReasonRollingOut = "RollingOut"

	// ReasonScaledToZero means that no pod is desired and none is left.
	ReasonScaledToZero = "ScaledToZero"

	// ReasonPortConflict means that another Service has the node port of the spec. The pods still serve on the
	// port in the status, if there is one.
	ReasonPortConflict = "PortConflict"

	// ReasonNameConflict means that a Deployment or a Service of the Lolcow's name exists and is not owned
	// by the Lolcow. It is left unchanged.
	ReasonNameConflict = "NameConflict"

	// ReasonApplyFailed means that the API server rejects the Deployment or the Service for any other reason;
	// the message is the API server's. Or an admission policy or webhook changes what is applied; the message
	// has the field.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonAPIError means that a request failed for a reason that may be temporary, for instance because an admission
	// webhook is down. It is retried; the message is that of the first failure, without addresses and times.
	ReasonAPIError = "APIError"

	// ReasonImageNotPulled means that a node could not pull the image; the message is the kubelet's.
	ReasonImageNotPulled = "ImageNotPulled"

	// ReasonContainerNotCreated means that the kubelet cannot create a container of a pod; the message is the kubelet's,
	// for instance that spec.image would run as root.
	ReasonContainerNotCreated = "ContainerNotCreated"
	// ReasonCrashLoopBackOff means that a container keeps ending, each time within 10 minutes; the message says with which
	// exit code.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"

	// ReasonUnschedulable means that no node fits a pod; the message is the scheduler's.
	ReasonUnschedulable = "Unschedulable"

	// ReasonPodsNotCreated means that pods are rejected, for instance by a quota; the message is that of the
	// condition ReplicaFailure of the Deployment.
	ReasonPodsNotCreated = "PodsNotCreated"

	// ReasonProgressDeadlineExceeded means that a rollout makes no progress for longer than the Deployment
	// allows, and that no pod says why.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)
