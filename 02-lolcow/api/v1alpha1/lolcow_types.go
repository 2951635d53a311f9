package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// `kubectl explain` prints the comments of fields, and keeps their line breaks. So each is one line, which the terminal wraps.

// LolcowSpec defines a greeting and how it is served.
type LolcowSpec struct {
	// greeting is what the cow says, up to 1,024 characters. If it is empty, each pod picks a fortune of its own.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('\\\\x00')",message="must not contain a NUL character: the arguments of a program cannot contain one"
	Greeting string `json:"greeting,omitempty"`

	// port is the node port at which every node serves the page, 30000 to 32767: a cluster whose node ports are in another range is not supported. If it is unset, the cluster allocates one, which status.port reports. While another Service has the port, the Lolcow keeps its old port. To exchange the ports of two Lolcows, move one of them to a third port first.
	// +optional
	// +kubebuilder:validation:Minimum=30000
	// +kubebuilder:validation:Maximum=32767
	Port *int32 `json:"port,omitempty"`

	// replicas is the number of pods that serve the greeting, 0 to 10.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the container image of the server. If it is empty, the operator uses the image of its flag --lolcow-image. A node that has the image does not pull it again, whatever its tag is.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('\\\\s')",message="must not contain white space"
	Image string `json:"image,omitempty"`
}

// LolcowStatus is the most recently observed status of the Lolcow. Only the operator writes it.
type LolcowStatus struct {
	// observedGeneration is the metadata.generation that this status is based on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// greeting is the greeting that all pods serve. It changes only once every pod serves the new greeting. It is empty while each pod serves a fortune of its own, and while there is no pod.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Greeting string `json:"greeting,omitempty"`

	// port is the node port that the Service has now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// conditions contains the condition Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Lolcow serves a greeting on a web page, at a port of every node.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cow,categories=all
// +kubebuilder:printcolumn:name="Greeting",type=string,JSONPath=`.status.greeting`,description="What the pods serve now"
// +kubebuilder:printcolumn:name="Port",type=integer,JSONPath=`.status.port`,description="The node port that serves it"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters: it is the name of a Service and the value of a label"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.')",message="metadata.name must not contain a dot: it is the name of a Service"
type Lolcow struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired greeting and how it is served.
	// +optional
	Spec LolcowSpec `json:"spec,omitempty"`

	// status is the most recently observed status.
	// +optional
	Status LolcowStatus `json:"status,omitempty"`
}

// LolcowList is a list of Lolcows.
// +kubebuilder:object:root=true
type LolcowList struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Lolcow `json:"items"`
}
