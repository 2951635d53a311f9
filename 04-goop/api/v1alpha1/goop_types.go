package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The comments of fields are what `kubectl explain` prints, line by line as they are broken here: one line
// each, and the terminal breaks them.

const (
	// MaxRounds is how many workers of one Goop may be on one node.
	MaxRounds = 32

	// MaxFailures is how many failures a status names.
	MaxFailures = 20

	// CleanupFinalizer keeps a Goop with a cleanupCmd until that has run.
	CleanupFinalizer = "goop.example.com/cleanup"
)

// FailurePolicy says what the failure of one worker means for the others.
// +kubebuilder:validation:Enum=Continue;FailFast
type FailurePolicy string

const (
	// FailurePolicyContinue lets the other workers finish.
	FailurePolicyContinue FailurePolicy = "Continue"
	// FailurePolicyFailFast ends the other workers.
	FailurePolicyFailFast FailurePolicy = "FailFast"
)

// HostRoot says how a worker sees its node's files.
// +kubebuilder:validation:Enum=None;ReadOnly;ReadWrite
type HostRoot string

const (
	// HostRootNone shows nothing of the node.
	HostRootNone HostRoot = "None"
	// HostRootReadOnly shows the node's root at /host.
	HostRootReadOnly HostRoot = "ReadOnly"
	// HostRootReadWrite gives the node's root at /host.
	HostRootReadWrite HostRoot = "ReadWrite"
)

// HostAccess is what a worker may see of its node. An operator without --allow-host-access does not grant it: else every user who may create Goops would own all nodes.
type HostAccess struct {
	// root says whether the node's root is at /host: None, ReadOnly or ReadWrite.
	// +optional
	// +kubebuilder:default=None
	Root HostRoot `json:"root,omitempty"`

	// pid lets a worker see the node's processes.
	// +optional
	PID bool `json:"pid,omitempty"`

	// network gives a worker the node's network.
	// +optional
	Network bool `json:"network,omitempty"`
}

// EnvVar is a variable that a worker sees. It is that of a pod's container, with bounds.
type EnvVar struct {
	// name of the variable: printable ASCII characters, without =.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[ -<>-~]+$`
	Name string `json:"name"`

	// value of the variable. $(NAME) stands for the value of a variable before it, $$ for one $.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Value string `json:"value,omitempty"`

	// valueFrom is where the value is taken from, in the place of value.
	// +optional
	ValueFrom *corev1.EnvVarSource `json:"valueFrom,omitempty"`
}

// GoopSpec is a command, and the nodes that it is run on. Only suspend, activeDeadlineSeconds and ttlSecondsAfterFinished may be changed.
// +kubebuilder:validation:XValidation:rule="has(self.jobCount) == has(oldSelf.jobCount)",message="is immutable: delete the Goop and create another",fieldPath=".jobCount"
// +kubebuilder:validation:XValidation:rule="has(self.image) == has(oldSelf.image)",message="is immutable: delete the Goop and create another",fieldPath=".image"
// +kubebuilder:validation:XValidation:rule="has(self.cleanupCmd) == has(oldSelf.cleanupCmd)",message="is immutable: delete the Goop and create another",fieldPath=".cleanupCmd"
// +kubebuilder:validation:XValidation:rule="has(self.nodeSelector) == has(oldSelf.nodeSelector)",message="is immutable: delete the Goop and create another",fieldPath=".nodeSelector"
// +kubebuilder:validation:XValidation:rule="has(self.tolerations) == has(oldSelf.tolerations)",message="is immutable: delete the Goop and create another",fieldPath=".tolerations"
// +kubebuilder:validation:XValidation:rule="has(self.resources) == has(oldSelf.resources)",message="is immutable: delete the Goop and create another",fieldPath=".resources"
// +kubebuilder:validation:XValidation:rule="has(self.env) == has(oldSelf.env)",message="is immutable: delete the Goop and create another",fieldPath=".env"
// +kubebuilder:validation:XValidation:rule="has(self.host) == has(oldSelf.host)",message="is immutable: delete the Goop and create another",fieldPath=".host"
type GoopSpec struct {
	// cmd is the program of a worker and its arguments, 1 to 64 strings. No shell sees it.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0].size() > 0",message="must begin with the name of a program"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.contains('\\x00'))",message="must not hold a NUL character: no program can be given one as an argument"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Cmd []string `json:"cmd"`

	// jobCount is how many workers there are, spread over the nodes as evenly as can be, at most 32 on a node. Unset: exactly one on every eligible node, those included that join while the Goop runs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=160000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	JobCount *int32 `json:"jobCount,omitempty"`

	// cleanupCmd is run once, before the Goop goes, on every node where work ran: again only where its pod is lost before its end was recorded. No shell sees it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0].size() > 0",message="must begin with the name of a program"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.contains('\\x00'))",message="must not hold a NUL character: no program can be given one as an argument"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	CleanupCmd []string `json:"cleanupCmd,omitempty"`

	// cleanupTimeoutSeconds is how long a Goop that is deleted waits for its cleanupCmd, from when the operator sees the deletion. After that it goes, and an Event says what was left.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	CleanupTimeoutSeconds int32 `json:"cleanupTimeoutSeconds,omitempty"`

	// image is the container image that a worker runs in. Unset: the operator's default, busybox.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('\\\\s')",message="must not contain white space"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Image string `json:"image,omitempty"`

	// nodeSelector are the labels of the nodes that may be used. Unset: all.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the taints of nodes that workers put up with, beside those of every DaemonSet: cordoned, not ready and short of memory, disk or process numbers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// retries is how often a worker tries again that does not end with 0.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Retries *int32 `json:"retries,omitempty"`

	// failurePolicy says what a worker that has failed for good means for the others: Continue lets them finish, FailFast ends them.
	// +optional
	// +kubebuilder:default=Continue
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// activeDeadlineSeconds is how long the work may take in all before it is ended. It begins anew on a resume. Unset: without end.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// suspend ends the workers that are not finished, and lets them begin anew when it is unset. What is finished never runs again.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ttlSecondsAfterFinished is how long the workers, and with them their logs, stay after the end. The Goop stays. Unset: until the Goop is deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// resources of a worker.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// env are variables that a worker sees, beside NODE_NAME, GOOP_NAME and GOOP_ROUND.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(e, !(e.name in ['NODE_NAME', 'GOOP_NAME', 'GOOP_ROUND']))",message="must not set NODE_NAME, GOOP_NAME or GOOP_ROUND: they are the operator's"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Env []EnvVar `json:"env,omitempty"`

	// host is what a worker may see of its node. Unset: nothing.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Host *HostAccess `json:"host,omitempty"`
}

// Failure is a worker that has not ended with 0 in all its tries.
type Failure struct {
	// node that the worker was on.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`

	// round is the number, from 0, of the worker among those on its node.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31
	Round int32 `json:"round"`

	// exitCode of the last try; 128 and the number of a signal, 127 if there was no such program.
	// +required
	ExitCode int32 `json:"exitCode"`

	// output is the end of what the last try wrote, at most 2 KiB.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Output string `json:"output,omitempty"`
}

// GoopStatus is what the operator saw.
type GoopStatus struct {
	// observedGeneration is the metadata.generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// desired is how many workers there are to be in all.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Desired int32 `json:"desired"`

	// running is how many workers are at work.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Running int32 `json:"running"`

	// succeeded is how many workers have ended with 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Succeeded int32 `json:"succeeded"`

	// failed is how many workers have not ended with 0 in all their tries.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Failed int32 `json:"failed"`

	// exitCode is the highest of any finished worker.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// startTime is when the work was begun, or resumed.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the Goop was seen to be Complete or Failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// cleanupStartTime is when the operator first saw that the Goop is being deleted. cleanupTimeoutSeconds count from then.
	// +optional
	CleanupStartTime *metav1.Time `json:"cleanupStartTime,omitempty"`

	// failures are the first workers that failed, at most 20 of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []Failure `json:"failures,omitempty"`

	// recordUIDs are the uids of the ConfigMaps of the record, by their number. A ConfigMap that is not among them is not believed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=64
	RecordUIDs []string `json:"recordUIDs,omitempty"`

	// conditions are Running, Suspended, Complete and Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Goop is a command that is run on nodes: once on each, or as often as it says, spread over them.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=all
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Succeeded",type=integer,JSONPath=`.status.succeeded`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Running")].reason`
// +kubebuilder:printcolumn:name="Complete",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].status`
// +kubebuilder:printcolumn:name="Exit",type=integer,JSONPath=`.status.exitCode`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 54",message="metadata.name must be at most 54 characters: with the round and a suffix after it, it is the name of pods"
type Goop struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the command, and the nodes that it is run on.
	// +required
	Spec GoopSpec `json:"spec"`

	// status is what was last seen of it.
	// +optional
	Status GoopStatus `json:"status,omitempty"`
}

// GoopList is a list of Goops.
// +kubebuilder:object:root=true
type GoopList struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Goop `json:"items"`
}
