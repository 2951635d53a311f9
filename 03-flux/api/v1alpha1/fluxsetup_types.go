package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxAttempts is how many attempts a Flux can have: each restart is one, and each resume after a suspension. The names of
// Jobs and hosts have room for so many digits.
const MaxAttempts = 9999

// Launch is what the FluxSetup controller has to remember from one reconciliation to the next: which Job is that of the attempt. It is written after the Job is created, and before the Job is started.
// +kubebuilder:validation:XValidation:rule="self.attempt >= oldSelf.attempt",message="attempt never falls",fieldPath=".attempt"
// +kubebuilder:validation:XValidation:rule="self.attempt != oldSelf.attempt || self.time == oldSelf.time",message="time is that of the attempt, and stays",fieldPath=".time"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.jobUID) || (has(self.jobUID) && self.jobUID == oldSelf.jobUID) == (self.attempt == oldSelf.attempt)",message="jobUID, once it is set, stays for the attempt, and for no other",fieldPath=".jobUID"
type Launch struct {
	// attempt is the attempt that the Job is for.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	Attempt int32 `json:"attempt"`

	// time is when the attempt was launched, or first could not be; spec.startupTimeoutSeconds counts from it.
	// +required
	Time metav1.Time `json:"time"`

	// jobUID is the uid of the attempt's Job. It is unset as long as the Job, or what it needs, cannot be created. No other Job is started for the attempt, even if this one is deleted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	JobUID string `json:"jobUID,omitempty"`
}

// FluxSetupSpec is a Flux with nothing left to guess. It is written by the operator only: all but launch by the Flux controller, launch by the FluxSetup controller.
// +kubebuilder:validation:XValidation:rule="self.attempt == oldSelf.attempt || self.attempt == oldSelf.attempt + 1",message="attempt only rises, by one",fieldPath=".attempt"
// +kubebuilder:validation:XValidation:rule="self.restarts == oldSelf.restarts || (self.restarts == oldSelf.restarts + 1 && self.attempt == oldSelf.attempt + 1)",message="restarts only rises, by one, and only with attempt",fieldPath=".restarts"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.launch) || has(self.launch)",message="launch is never taken back",fieldPath=".launch"
// +kubebuilder:validation:XValidation:rule="!has(self.launch) || self.launch.attempt <= self.attempt",message="launch.attempt must be at most attempt",fieldPath=".launch"
type FluxSetupSpec struct {
	// image of the brokers and of the command.
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

	// minSize is the number of brokers that make the quorum.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	MinSize int32 `json:"minSize"`

	// tasks is how often the command is run side by side, in the mode Submit.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Tasks int32 `json:"tasks"`

	// cores is how many cores Flux gives out on each rank.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Cores int32 `json:"cores"`

	// resources of each broker's container.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Resources corev1.ResourceRequirements `json:"resources"`

	// template is what else the pods should be. Its security contexts are set.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Template PodTemplate `json:"template"`

	// broker is port, time-out and log level of the brokers.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Broker Broker `json:"broker"`

	// startupTimeoutSeconds is how long an attempt may take until its quorum is reached.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	StartupTimeoutSeconds int32 `json:"startupTimeoutSeconds"`

	// activeDeadlineSeconds is how long an attempt may take in all. Null: without end. The Flux controller owns the field then too, so that no other value stays.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds"`

	// attempt is the number of the present start of the brokers, 1 to 9999. A restart and a resume each begin a new one.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	Attempt int32 `json:"attempt"`

	// restarts is how many of the attempts are there because one before them failed.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Restarts int32 `json:"restarts"`

	// suspend is whether nothing should exist: no Job, no pods, no Secret, no ConfigMap, no Service.
	// +required
	Suspend bool `json:"suspend"`

	// launch is what the FluxSetup controller remembers of the attempt.
	// +optional
	Launch *Launch `json:"launch,omitempty"`
}

// FluxSetupStatus is what the FluxSetup controller saw.
type FluxSetupStatus struct {
	// observedGeneration is the metadata.generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// attempt is the attempt that the rest of this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9999
	Attempt int32 `json:"attempt,omitempty"`

	// readyRanks is how many brokers are ready. Rank 0 is ready when the quorum was reached and the work has begun.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ReadyRanks int32 `json:"readyRanks,omitempty"`

	// leaderPod is the name of the pod of rank 0, whose log has the output of all.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LeaderPod string `json:"leaderPod,omitempty"`

	// exitCode is that of rank 0, the only one that means anything.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// configHash is the SHA-256, in hexadecimal, of the files that the brokers of the attempt read. It is that of the Job.
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

// FluxSetup is the cluster of brokers of one Flux, which has its name and owns it. It is the operator's: one that
// a user makes is not accepted.
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

	// spec is a Flux with nothing left to guess.
	// +required
	Spec FluxSetupSpec `json:"spec"`

	// status is what was last observed of it.
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
