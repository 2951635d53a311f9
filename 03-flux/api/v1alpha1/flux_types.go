package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// `kubectl explain` prints the comments of fields, and keeps their line breaks. So each is one line, which the terminal wraps.

// Mode says how the command is run.
// +kubebuilder:validation:Enum=Submit;Launcher
type Mode string

const (
	// ModeSubmit runs the command as tasks on the ranks, by `flux run`.
	ModeSubmit Mode = "Submit"
	// ModeLauncher runs the command once, on rank 0, as the broker's initial program, so that it can submit
	// work itself.
	ModeLauncher Mode = "Launcher"
)

// Broker configures the Flux brokers.
type Broker struct {
	// port is the TCP port on which the broker of rank 0 accepts the connections of the other brokers.
	// +optional
	// +kubebuilder:default=8050
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// connectTimeout is how long a broker waits for a connection to rank 0 before it tries again: a number of seconds, for example 5s.
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*s$`
	ConnectTimeout string `json:"connectTimeout,omitempty"`

	// logLevel is the syslog severity up to which the brokers log to standard error: 3 error, 4 warning, 6 informational, 7 debug.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=7
	LogLevel *int32 `json:"logLevel,omitempty"`
}

// FluxSpec defines a command and the cluster of Flux brokers that runs it. Only suspend, ttlSecondsAfterFinished, startupTimeoutSeconds and activeDeadlineSeconds may be changed.
// +kubebuilder:validation:XValidation:rule="!has(self.tasks) || self.tasks >= self.size",message="tasks must be at least size: Flux places at least one task on each rank",fieldPath=".tasks"
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || self.minSize <= self.size",message="minSize must be at most size",fieldPath=".minSize"
// +kubebuilder:validation:XValidation:rule="has(self.tasks) == has(oldSelf.tasks)",message="is immutable: delete the Flux and create another",fieldPath=".tasks"
// +kubebuilder:validation:XValidation:rule="has(self.minSize) == has(oldSelf.minSize)",message="is immutable: delete the Flux and create another",fieldPath=".minSize"
// +kubebuilder:validation:XValidation:rule="has(self.resources) == has(oldSelf.resources)",message="is immutable: delete the Flux and create another",fieldPath=".resources"
// +kubebuilder:validation:XValidation:rule="has(self.template) == has(oldSelf.template)",message="is immutable: delete the Flux and create another",fieldPath=".template"
type FluxSpec struct {
	// image is the container image that the command runs in. It must contain flux-core with its Python, /bin/sh, bash and install.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('\\\\s')",message="must not contain white space"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Image string `json:"image"`

	// command is the program and its arguments, at most 196608 bytes in total. It is not executed within a shell; each argument is passed unchanged.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0].size() > 0",message="must begin with the name of a program"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.contains('\\x00'))",message="must not contain a NUL character: the arguments of a program cannot contain one"
	// +kubebuilder:validation:XValidation:rule="self.map(a, bytes(a).size()).sum() <= 196608",message="must be at most 196608 bytes of UTF-8 in all: it must fit into a ConfigMap, however it is quoted"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Command []string `json:"command"`

	// size is the number of brokers, 1 to 1000. Each runs in its own pod.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Size int32 `json:"size,omitempty"`

	// tasks is the number of copies of the command that run in parallel in mode Submit. It must be at least size, and defaults to size.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Tasks *int32 `json:"tasks,omitempty"`

	// minSize is the number of brokers that must be connected before the command starts. The command then runs on that many ranks. Defaults to size.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	MinSize *int32 `json:"minSize,omitempty"`

	// mode is how the command runs. Submit runs it as tasks on the ranks. Launcher runs it once, on rank 0, so that it can submit work itself. Defaults to Submit.
	// +optional
	// +kubebuilder:default=Submit
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Mode Mode `json:"mode,omitempty"`

	// resources are the compute resources of each broker's container. The number of cores that Flux schedules on a rank is the number that the tasks need or the CPU limit (or request), whichever is greater.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// template customizes the pods of the brokers.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Template *PodTemplate `json:"template,omitempty"`

	// suspend specifies whether the Flux should be suspended. Setting it terminates the pods; unsetting it starts the command from the beginning.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// maxRestarts is the number of times that all brokers are restarted after a broker or the command failed. Each restart is a new attempt with new pods. Between the starts of two attempts at least 10 seconds pass; this delay doubles with each restart, up to 5 minutes.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	MaxRestarts int32 `json:"maxRestarts,omitempty"`

	// startupTimeoutSeconds is the duration in seconds within which each attempt must reach its quorum: minSize brokers that are connected. It is measured again after a restart of the operator.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	StartupTimeoutSeconds int32 `json:"startupTimeoutSeconds,omitempty"`

	// activeDeadlineSeconds is the duration in seconds that an attempt may be active before the operator terminates it. The Flux then fails without a restart. If unset, there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished is the duration in seconds that the pods, with their logs and files, are kept after the Flux has finished. The Flux itself is not deleted. If unset, the pods are kept until the Flux is deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// broker configures the brokers.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Broker *Broker `json:"broker,omitempty"`
}

// SetupReference names the FluxSetup of a Flux.
type SetupReference struct {
	// name of the FluxSetup. It equals the name of the Flux.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the FluxSetup. A FluxSetup of the same name with another uid does not belong to this Flux.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`
}

// FluxStatus is the most recently observed status of the Flux.
type FluxStatus struct {
	// observedGeneration is the metadata.generation that this status is based on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// readyRanks is the number of brokers that are ready, at most spec.size. Rank 0 is ready once the command has started.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ReadyRanks int32 `json:"readyRanks"`

	// exitCode is the exit code of the command, or of the broker if the command did not start.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// restarts is the number of times that all brokers were restarted after a failure.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Restarts int32 `json:"restarts,omitempty"`

	// startTime is when the current attempt started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the Flux was observed to be Complete or Failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// setupRef refers to the FluxSetup that was created for this Flux. It never changes.
	// +optional
	SetupRef *SetupReference `json:"setupRef,omitempty"`

	// conditions are SetupReady, Running, Suspended, Restarting, Complete and Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Flux runs a command once on a cluster of Flux brokers that is created for it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=fluxes,singular=flux,categories=all
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`,description="How many brokers there should be"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyRanks`,description="How many brokers are ready"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Running")].reason`,description="Why the command runs, or does not"
// +kubebuilder:printcolumn:name="Complete",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].status`
// +kubebuilder:printcolumn:name="Failed",type=string,JSONPath=`.status.conditions[?(@.type=="Failed")].reason`
// +kubebuilder:printcolumn:name="Exit",type=integer,JSONPath=`.status.exitCode`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a letter and have no dots: it is the name of a Service and of hosts"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() + 6 + string(self.spec.size - 1).size() <= 63",optionalOldSelf=true,message="metadata.name with -9999- and the last rank after it must be at most 63 characters: it is the name of a host"
type Flux struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired command and the cluster of brokers that runs it.
	// +required
	Spec FluxSpec `json:"spec"`

	// status is the most recently observed status.
	// +optional
	Status FluxStatus `json:"status,omitempty"`
}

// FluxList is a list of Fluxes.
// +kubebuilder:object:root=true
type FluxList struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Flux `json:"items"`
}
