package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// `kubectl explain` prints the comments of fields, and keeps their line breaks. So each is one line, which the terminal wraps.

const (
	// MaxRounds is the maximum number of workers of one Goop on one node.
	MaxRounds = 32

	// MaxFailures is the maximum number of failures that a status lists.
	MaxFailures = 20

	// CleanupFinalizer blocks the deletion of a Goop with a cleanupCmd until the cleanup has run.
	CleanupFinalizer = "goop.example.com/cleanup"
)

// FailurePolicy says what the failure of one worker means for the others.
// +kubebuilder:validation:Enum=Continue;FailFast
type FailurePolicy string

const (
	// FailurePolicyContinue lets the other workers run to completion.
	FailurePolicyContinue FailurePolicy = "Continue"
	// FailurePolicyFailFast terminates the other workers.
	FailurePolicyFailFast FailurePolicy = "FailFast"
)

// HostRoot says how the root file system of its node is mounted in a worker.
// +kubebuilder:validation:Enum=None;ReadOnly;ReadWrite
type HostRoot string

const (
	// HostRootNone does not mount it.
	HostRootNone HostRoot = "None"
	// HostRootReadOnly mounts it at /host, read-only.
	HostRootReadOnly HostRoot = "ReadOnly"
	// HostRootReadWrite mounts it at /host, writable.
	HostRootReadWrite HostRoot = "ReadWrite"
)

// HostAccess is the access of a worker to its node. An operator that runs without --allow-host-access rejects it: otherwise every user with permission to create Goops would control all nodes.
type HostAccess struct {
	// root is how the node's root file system is mounted at /host: None, ReadOnly or ReadWrite. Defaults to None.
	// +optional
	// +kubebuilder:default=None
	Root HostRoot `json:"root,omitempty"`

	// pid makes a worker use the node's process ID namespace.
	// +optional
	PID bool `json:"pid,omitempty"`

	// network makes a worker use the node's network namespace.
	// +optional
	Network bool `json:"network,omitempty"`
}

// EnvVar is an environment variable of a worker. It is the EnvVar of core/v1 with bounds.
type EnvVar struct {
	// name of the variable: printable ASCII characters, without =.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[ -<>-~]+$`
	Name string `json:"name"`

	// value of the variable. A reference $(NAME) is replaced by the value of a variable that is defined earlier; $$ is replaced by $.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="!self.contains('\\x00')",message="must not contain a NUL character: an environment variable cannot contain one"
	Value string `json:"value,omitempty"`

	// valueFrom is the source of the value. It cannot be used if value is not empty.
	// +optional
	ValueFrom *corev1.EnvVarSource `json:"valueFrom,omitempty"`
}

// GoopSpec defines a command and the nodes that it runs on. Only suspend, activeDeadlineSeconds and ttlSecondsAfterFinished are mutable. cmd, cleanupCmd and env have at most 131072 characters in total, so that the object has room for its status.
// +kubebuilder:validation:XValidation:rule="self.cmd.map(a, a.size()).sum() + (has(self.cleanupCmd) ? self.cleanupCmd.map(a, a.size()).sum() : 0) + (has(self.env) ? self.env.map(e, e.name.size() + (has(e.value) ? e.value.size() : 0)).sum() : 0) <= 131072",message="cmd, cleanupCmd and env must have at most 131072 characters in all"
// +kubebuilder:validation:XValidation:rule="has(self.jobCount) == has(oldSelf.jobCount)",message="is immutable: delete the Goop and create another",fieldPath=".jobCount"
// +kubebuilder:validation:XValidation:rule="has(self.image) == has(oldSelf.image)",message="is immutable: delete the Goop and create another",fieldPath=".image"
// +kubebuilder:validation:XValidation:rule="has(self.cleanupCmd) == has(oldSelf.cleanupCmd)",message="is immutable: delete the Goop and create another",fieldPath=".cleanupCmd"
// +kubebuilder:validation:XValidation:rule="has(self.nodeSelector) == has(oldSelf.nodeSelector)",message="is immutable: delete the Goop and create another",fieldPath=".nodeSelector"
// +kubebuilder:validation:XValidation:rule="has(self.tolerations) == has(oldSelf.tolerations)",message="is immutable: delete the Goop and create another",fieldPath=".tolerations"
// +kubebuilder:validation:XValidation:rule="has(self.resources) == has(oldSelf.resources)",message="is immutable: delete the Goop and create another",fieldPath=".resources"
// +kubebuilder:validation:XValidation:rule="has(self.env) == has(oldSelf.env)",message="is immutable: delete the Goop and create another",fieldPath=".env"
// +kubebuilder:validation:XValidation:rule="has(self.host) == has(oldSelf.host)",message="is immutable: delete the Goop and create another",fieldPath=".host"
type GoopSpec struct {
	// cmd is the program of a worker and its arguments, 1 to 64 strings. It is not executed within a shell.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0].size() > 0",message="must begin with the name of a program"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.contains('\\x00'))",message="must not contain a NUL character: the arguments of a program cannot contain one"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Cmd []string `json:"cmd"`

	// jobCount is the number of workers, at most 32 on each node. They are spread as evenly as possible; a node that is not ready or has memory, disk or PID pressure is used only if the others have no room. If unset, exactly one worker runs on every eligible node, including nodes that join while the Goop runs. Nodes are identified by name: a node that joins under the name of a removed node is the same node.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=160000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	JobCount *int32 `json:"jobCount,omitempty"`

	// cleanupCmd is the command that runs once on every node where work ran, before the Goop is removed. It runs again on a node only if its pod is lost before its result was recorded. It is not executed within a shell.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0].size() > 0",message="must begin with the name of a program"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.contains('\\x00'))",message="must not contain a NUL character: the arguments of a program cannot contain one"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	CleanupCmd []string `json:"cleanupCmd,omitempty"`

	// cleanupTimeoutSeconds is the duration in seconds that the deletion of a Goop waits for cleanupCmd, measured from when the operator observes the deletion. After that the Goop is removed, and an Event lists the nodes on which the cleanup did not finish.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	CleanupTimeoutSeconds int32 `json:"cleanupTimeoutSeconds,omitempty"`

	// image is the container image of a worker. Defaults to the image that the operator is configured with, busybox.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('\\\\s')",message="must not contain white space"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Image string `json:"image,omitempty"`

	// nodeSelector contains the labels that a node must have to be eligible. If unset, all nodes with the operating system Linux are eligible. Nodes with another one never are.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the workers, in addition to those of every DaemonSet pod: not ready, unreachable, unschedulable, and memory, disk and PID pressure.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// retries is the number of times that a worker runs again after an exit code other than 0.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Retries *int32 `json:"retries,omitempty"`

	// failurePolicy is what happens to the other workers when a worker has failed after all its retries: Continue lets them run to completion, FailFast terminates them. Defaults to Continue.
	// +optional
	// +kubebuilder:default=Continue
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// activeDeadlineSeconds is the duration in seconds that the Goop may be active before the operator terminates its workers. It starts again when the Goop is resumed. If unset, there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// suspend specifies whether the Goop should be suspended. Setting it terminates the workers that have not finished; unsetting it starts those workers again. The operator does not start finished workers again: their commands run again only if their pods are deleted or evicted, and the DaemonSet controller replaces them first.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ttlSecondsAfterFinished is the duration in seconds that the pods of the workers, with their logs, are kept after the Goop has finished. The Goop itself is not deleted. If unset, the pods are kept until the Goop is deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// resources are the compute resources of a worker. The operator's own containers of the pod have them too, but run at other times: a memory limit has to be at least 32Mi. They stay requested until the pod is deleted: after the TTL, with the Goop, or earlier if the node has no room for another worker of the Goop.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// env are environment variables of a worker, in addition to NODE_NAME, GOOP_NAME and GOOP_ROUND.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(e, !(e.name in ['NODE_NAME', 'GOOP_NAME', 'GOOP_ROUND']))",message="must not set NODE_NAME, GOOP_NAME or GOOP_ROUND: they are the operator's"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Env []EnvVar `json:"env,omitempty"`

	// host is the access of a worker to its node. If unset, it has none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Goop and create another"
	Host *HostAccess `json:"host,omitempty"`
}

// Failure describes a worker that did not succeed in any of its attempts.
type Failure struct {
	// node is the name of the node that the worker ran on.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`

	// round is the number, from 0, of the worker among those on its node.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31
	Round int32 `json:"round"`

	// exitCode of the last attempt. It is 128 plus the signal number if a signal terminated the program, and 127 if the program was not found.
	// +required
	ExitCode int32 `json:"exitCode"`

	// output is the end of the last attempt's output, at most 2 KiB.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Output string `json:"output,omitempty"`
}

// GoopStatus is the most recently observed status of the Goop.
type GoopStatus struct {
	// observedGeneration is the metadata.generation that this status is based on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// desired is the total number of workers that should run.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Desired int32 `json:"desired"`

	// running is the number of workers that are running.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Running int32 `json:"running"`

	// succeeded is the number of workers that finished with exit code 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Succeeded int32 `json:"succeeded"`

	// failed is the number of workers that did not succeed in any of their attempts.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Failed int32 `json:"failed"`

	// exitCode is the highest exit code of the finished workers.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// startTime is when the Goop started, or was resumed.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the Goop was observed to be Complete or Failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// cleanupStartTime is when the operator first observed the deletion of the Goop. cleanupTimeoutSeconds is measured from this time.
	// +optional
	CleanupStartTime *metav1.Time `json:"cleanupStartTime,omitempty"`

	// failures lists the first workers that failed, at most 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []Failure `json:"failures,omitempty"`

	// recordUIDs are the uids of the ConfigMaps that record which workers have finished, in the order of their numbers. A ConfigMap with another uid is ignored.
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

// Goop runs a command on nodes: once on each node, or jobCount times, spread over the nodes.
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

	// spec is the desired command and the nodes that it runs on.
	// +required
	Spec GoopSpec `json:"spec"`

	// status is the most recently observed status.
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
