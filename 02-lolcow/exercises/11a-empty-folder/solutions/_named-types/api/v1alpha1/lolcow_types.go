package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Text is what a cow says.
// +kubebuilder:validation:MaxLength=1024
type Text string

// NodePort is a port of every node.
// +kubebuilder:validation:XValidation:rule="self >= 30000 && self <= 32767",message="a node port is from 30000 to 32767"
type NodePort int32

// Replicas is a number of pods.
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=10
type Replicas int32

// LolcowSpec defines the desired state of Lolcow.
type LolcowSpec struct {
	// greeting is what the cow says.
	// +optional
	Greeting *Text `json:"greeting,omitempty"`

	// port is the node port at which the greeting is served. If it is unset, the cluster picks one.
	// +optional
	Port NodePort `json:"port,omitzero"`

	// replicas is the number of pods.
	// +default=1
	// +optional
	Replicas *Replicas `json:"replicas,omitempty"`
}

// LolcowStatus defines the observed state of Lolcow.
type LolcowStatus struct {
	// conditions say how the Lolcow is.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status

// Lolcow is the Schema for the lolcows API
type Lolcow struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec LolcowSpec `json:"spec"`

	// +optional
	Status LolcowStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// LolcowList contains a list of Lolcow
type LolcowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Lolcow `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(s *runtime.Scheme) error {
		s.AddKnownTypes(SchemeGroupVersion, &Lolcow{}, &LolcowList{})
		return nil
	})
}
