package v1alpha1

// Labels of the pods of a Goop's workers and of their DaemonSets, in addition to the recommended labels app.kubernetes.io/….
const (
	// LabelGoop is the name of the Goop, on everything that is created for it.
	LabelGoop = "goop.example.com/goop"

	// LabelGoopUID is the uid of that Goop: a Goop that is deleted and created again has the same name, but another uid.
	LabelGoopUID = "goop.example.com/goop-uid"

	// LabelRound is the number, from 0, of the worker among those on its node.
	LabelRound = "goop.example.com/round"

	// LabelRole says what a pod is for: RoleWork or RoleCleanup.
	LabelRole = "goop.example.com/role"

	// LabelUnrecorded is on a DaemonSet whose affinity has lost nodes although the record could not be written. Its value
	// is the start of the work in the record.
	LabelUnrecorded = "goop.example.com/unrecorded"

	// RoleWork is the work, spec.cmd.
	RoleWork = "work"

	// RoleCleanup is the cleanup, spec.cleanupCmd.
	RoleCleanup = "cleanup"

	// WorkContainer is the init container in which the command runs. When it has terminated the worker is finished,
	// and its termination message records how. Its log is the output.
	WorkContainer = "work"
)
