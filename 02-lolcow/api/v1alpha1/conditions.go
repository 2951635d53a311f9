package v1alpha1

// ConditionReady is True when every replica serves the greeting of the spec on the port of the
// spec. It is False in all other cases, and its reason says which.
const ConditionReady = "Ready"

// Reasons of ConditionReady.
const (
	// ReasonServing means that every replica is up to date and available. The one reason of True.
	ReasonServing = "Serving"

	// ReasonRollingOut means that the children are as the spec wants them and that their pods are
	// not yet all replaced and available.
	ReasonRollingOut = "RollingOut"

	// ReasonScaledToZero means that no pod is wanted and none is left.
	ReasonScaledToZero = "ScaledToZero"

	// ReasonPortConflict means that another Service holds the node port of the spec. What was served
	// before, if anything, still is, on the port in the status.
	ReasonPortConflict = "PortConflict"

	// ReasonNameConflict means that a Deployment or a Service of the Lolcow's name is there already
	// and is not the Lolcow's. It is left as it is.
	ReasonNameConflict = "NameConflict"

	// ReasonImageNotPulled means that a node could not pull the image; the message is the kubelet's.
	ReasonImageNotPulled = "ImageNotPulled"

	// ReasonApplyFailed means that the API server refused a child for any other reason; the message
	// is the API server's.
	ReasonApplyFailed = "ApplyFailed"
)
