package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxAttempts is how many attempts a Flux can have: each restart is one, and each resume after a suspension. The names of
// Jobs and hosts have room for so many digits.
const MaxAttempts = 9999

// Launch records which Job belongs to the attempt. The FluxSetup controller writes it after it has created the Job, and before it starts the Job.
// +kubebuilder:validation:XValidation:rule="self.attempt >= oldSelf.attempt",message="attempt must not decrease",fieldPath=".attempt"
// +kubebuilder:validation:XValidation:rule="self.attempt != oldSelf.attempt || self.time == oldSelf.time || (!has(oldSelf.jobUID) && has(self.jobUID))",message="time can change only with attempt, or when jobUID is set",fieldPath=".time"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.jobUID) || (has(self.jobUID) && self.jobUID == oldSelf.jobUID) == (self.attempt == oldSelf.attempt)",message="once jobUID is set, it changes with attempt, and only then",fieldPath=".jobUID"
type Launch struct {
	// attempt is the number of the attempt that the Job runs.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	Attempt int32 `json:"attempt"`

	// time is when the launch succeeded or, until then, when it first failed. spec.startupTimeoutSeconds counts from this time, and again from the start of the Job. It also counts again after a restart of the operator.
	// +required
	Time metav1.Time `json:"time"`

	// jobUID is the uid of the Job of the attempt. It is unset while the Job, or an object that the Job needs, cannot be created. The operator never starts another Job for the attempt, even if this one is deleted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	JobUID string `json:"jobUID,omitempty"`
}

// FluxSetupSpec is the spec of a Flux with all defaults resolved. Only the operator writes it: the FluxSetup controller writes launch, the Flux controller all other fields.
// +kubebuilder:validation:XValidation:rule="self.attempt == oldSelf.attempt || self.attempt == oldSelf.attempt + 1",message="attempt can only increase, by 1",fieldPath=".attempt"
// +kubebuilder:validation:XValidation:rule="self.restarts == oldSelf.restarts || (self.restarts == oldSelf.restarts + 1 && self.attempt == oldSelf.attempt + 1)",message="restarts can only increase, by 1, and only together with attempt",fieldPath=".restarts"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.launch) || has(self.launch)",message="launch cannot be removed",fieldPath=".launch"
// +kubebuilder:validation:XValidation:rule="!has(self.launch) || self.launch.attempt <= self.attempt",message="launch.attempt must be at most attempt",fieldPath=".launch"
type FluxSetupSpec struct {
	// image is the container image of the brokers and of the command.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Image string `json:"image"`

	// command is the program and its arguments.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Command []string `json:"command"`

	// mode is Submit or Launcher.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Mode Mode `json:"mode"`

	// size is the number of brokers.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Size int32 `json:"size"`

	// minSize is the number of brokers that form the quorum.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	MinSize int32 `json:"minSize"`

	// tasks is the number of copies of the command that run in parallel in mode Submit.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Tasks int32 `json:"tasks"`

	// cores is the number of cores that Flux schedules on each rank.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Cores int32 `json:"cores"`

	// resources are the compute resources of each broker's container.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Resources corev1.ResourceRequirements `json:"resources"`

	// template customizes the pods of the brokers. Its security contexts are always set.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Template PodTemplate `json:"template"`

	// broker configures the brokers.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Broker Broker `json:"broker"`

	// startupTimeoutSeconds is the duration in seconds within which an attempt must reach its quorum.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	StartupTimeoutSeconds int32 `json:"startupTimeoutSeconds"`

	// activeDeadlineSeconds is the duration in seconds that an attempt may be active. Null means no limit; the Flux controller then still owns the field, so that another writer's value is removed.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds"`

	// attempt is the number of the current attempt, 1 to 9999. Each restart and each resume starts a new attempt.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	Attempt int32 `json:"attempt"`

	// restarts is the number of attempts that were started because the previous attempt failed.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Restarts int32 `json:"restarts"`

	// suspend specifies whether the Job, its pods, the Secret, the ConfigMap and the Service are to be deleted.
	// +required
	Suspend bool `json:"suspend"`

	// launch records which Job belongs to the attempt.
	// +optional
	Launch *Launch `json:"launch,omitempty"`
}

// FluxSetupStatus is the most recently observed status of the FluxSetup.
type FluxSetupStatus struct {
	// observedGeneration is the metadata.generation that this status is based on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// attempt is the number of the attempt that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9999
	Attempt int32 `json:"attempt,omitempty"`

	// readyRanks is the number of brokers that are ready. Rank 0 is ready once the quorum is reached and the command has started.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ReadyRanks int32 `json:"readyRanks"`

	// leaderPod is the name of the pod of rank 0. Its log contains the output of all ranks.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LeaderPod string `json:"leaderPod,omitempty"`

	// exitCode is the exit code of rank 0. The exit codes of other ranks are not significant.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// configHash is the hexadecimal SHA-256 of the files that the brokers of the attempt read. The Job carries the same hash.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// conditions are Accepted, Configured, QuorumReached, Complete and Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FluxSetup is the cluster of brokers of one Flux. The Flux has the same name and owns it. Only the operator creates
// FluxSetups: one that a user creates is not accepted.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.spec.attempt`
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyRanks`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="QuorumReached")].reason`
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=`.status.leaderPod`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() + 6 + string(self.spec.size - 1).size() <= 63",optionalOldSelf=true,message="metadata.name with -9999- and the last rank after it must be at most 63 characters: it is the name of a host"
type FluxSetup struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the spec of the Flux with all defaults resolved.
	// +required
	Spec FluxSetupSpec `json:"spec"`

	// status is the most recently observed status.
	// +optional
	Status FluxSetupStatus `json:"status,omitempty"`
}

// FluxSetupList is a list of FluxSetups.
// +kubebuilder:object:root=true
type FluxSetupList struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FluxSetup `json:"items"`
}
