package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The comments of fields are what `kubectl explain` prints, line by line as they are broken here: one line
// each, and the terminal breaks them.

// Mode says how the command is run.
// +kubebuilder:validation:Enum=Submit;Launcher
type Mode string

const (
	// ModeSubmit runs the command as tasks, by `flux run`, on the ranks.
	ModeSubmit Mode = "Submit"
	// ModeLauncher runs the command once, on rank 0, as the broker's initial program, so that it can submit
	// work itself.
	ModeLauncher Mode = "Launcher"
)

// Broker is what may be said of the Flux brokers.
type Broker struct {
	// port at which rank 0 listens to the others.
	// +optional
	// +kubebuilder:default=8050
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// connectTimeout is how long a rank tries to connect to rank 0 before it tries anew: a number of seconds, such as 5s.
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*s$`
	ConnectTimeout string `json:"connectTimeout,omitempty"`

	// logLevel is what the brokers write to their standard error, by the numbers of syslog: 3 errors, 4 warnings, 6 information, 7 all.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=7
	LogLevel *int32 `json:"logLevel,omitempty"`
}

// FluxSpec is a command, and the cluster of Flux brokers that it runs on. Only suspend, ttlSecondsAfterFinished, startupTimeoutSeconds and activeDeadlineSeconds may be changed.
// +kubebuilder:validation:XValidation:rule="!has(self.tasks) || self.tasks >= self.size",message="tasks must be at least size: Flux places at least one task on each rank",fieldPath=".tasks"
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || self.minSize <= self.size",message="minSize must be at most size",fieldPath=".minSize"
// +kubebuilder:validation:XValidation:rule="has(self.tasks) == has(oldSelf.tasks)",message="is immutable: delete the Flux and create another",fieldPath=".tasks"
// +kubebuilder:validation:XValidation:rule="has(self.minSize) == has(oldSelf.minSize)",message="is immutable: delete the Flux and create another",fieldPath=".minSize"
// +kubebuilder:validation:XValidation:rule="has(self.resources) == has(oldSelf.resources)",message="is immutable: delete the Flux and create another",fieldPath=".resources"
// +kubebuilder:validation:XValidation:rule="has(self.template) == has(oldSelf.template)",message="is immutable: delete the Flux and create another",fieldPath=".template"
type FluxSpec struct {
	// image is the container image that the command runs in. It must hold Flux (flux-core with its Python), /bin/sh, bash and install.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('\\\\s')",message="must not contain white space"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Image string `json:"image"`

	// command is the program and its arguments. No shell sees it, and it arrives byte for byte.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0].size() > 0",message="must begin with the name of a program"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.contains('\\x00'))",message="must not hold a NUL character: no program can be given one as an argument"
	// +kubebuilder:validation:XValidation:rule="self.map(a, a.size()).sum() <= 262144",message="must be at most 262144 characters in all: it must fit into a Job"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Command []string `json:"command"`

	// size is the number of brokers, each a pod of its own, 1 to 1000.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Size int32 `json:"size,omitempty"`

	// tasks is how often the command is run side by side, in the mode Submit: at least size, which is what it is if it is unset.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Tasks *int32 `json:"tasks,omitempty"`

	// minSize is how many brokers must be there for the work to start; unset, all. The command is then run on that many ranks.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	MinSize *int32 `json:"minSize,omitempty"`

	// mode is Submit, the command as tasks on the ranks, or Launcher, the command once, on rank 0, to submit work itself.
	// +optional
	// +kubebuilder:default=Submit
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Mode Mode `json:"mode,omitempty"`

	// resources of each broker's container. The cores that Flux gives out are those that the tasks need, or, if it is more, the CPUs of the limit or of the request.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// template is what else the pods should be.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Template *PodTemplate `json:"template,omitempty"`

	// suspend ends the pods, and begins anew when it is unset.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// maxRestarts is how often all brokers are started again, from clean, after one failed or the command did. From the start of an attempt to the next restart pass at least 10 seconds, which double with each restart, up to 5 minutes.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	MaxRestarts int32 `json:"maxRestarts,omitempty"`

	// startupTimeoutSeconds is how long each start may take, until enough brokers have found each other for the work to begin.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	StartupTimeoutSeconds int32 `json:"startupTimeoutSeconds,omitempty"`

	// activeDeadlineSeconds is how long each start may take in all, the work included, before it is ended. There is no restart after that. Unset: without end.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished is how long pods, logs and files stay after the end. The Flux stays. Unset: until the Flux is deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// broker is what may be said of the brokers.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the Flux and create another"
	Broker *Broker `json:"broker,omitempty"`
}

// SetupReference names the FluxSetup of a Flux.
type SetupReference struct {
	// name of the FluxSetup, which is the Flux's own.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the FluxSetup. One of another uid is not this Flux's work.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`
}

// FluxStatus is what the operator saw.
type FluxStatus struct {
	// observedGeneration is the metadata.generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// readyRanks is how many of the spec.size brokers are ready. Rank 0 is ready when the work has begun.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ReadyRanks int32 `json:"readyRanks"`

	// exitCode is that of the command, or of the broker where the command did not come to run.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// restarts is how often all brokers were started again after a failure.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Restarts int32 `json:"restarts,omitempty"`

	// startTime is when the present attempt was begun.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the Flux was observed to be Complete or Failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// setupRef is the FluxSetup that was made for this Flux. There is never a second one.
	// +optional
	SetupRef *SetupReference `json:"setupRef,omitempty"`

	// conditions are SetupReady, Running, Suspended, Restarting, Complete and Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Flux is a command that runs once on a cluster of Flux brokers, which is made for it.
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

	// spec is the command, and the cluster that it runs on.
	// +required
	Spec FluxSpec `json:"spec"`

	// status is what was last observed of it.
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
