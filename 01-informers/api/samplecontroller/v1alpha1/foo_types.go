package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// `kubectl explain` prints the comments of fields, and keeps their line breaks. So each is one line, which the terminal wraps.

// FooSpec is the desired state: one Deployment, under a name of the user's choice.
type FooSpec struct {
	// deploymentName is the name of the Deployment, a DNS label. When it changes, a Deployment of the new name replaces the old one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be a DNS label: small letters, digits and '-', with a letter or digit at both ends"
	DeploymentName string `json:"deploymentName"`

	// replicas is the number of pods that the Deployment keeps, 0 to 100.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is the observed state: it is written by the controller only.
type FooStatus struct {
	// observedGeneration is the metadata.generation of the spec that this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// availableReplicas is the number of pods that the Deployment says are available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	AvailableReplicas int32 `json:"availableReplicas"`

	// conditions holds the condition Ready and, when the API server has rejected the Deployment as often as it is tried, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Foo keeps a Deployment of a program that does nothing.
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=all
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters: it is the value of a label"
type Foo struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the Deployment.
	// +required
	Spec FooSpec `json:"spec"`

	// status is the state of the Deployment that was last observed.
	// +optional
	Status FooStatus `json:"status,omitempty"`
}

// FooList is a list of Foos.
// +kubebuilder:object:root=true
type FooList struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Foo `json:"items"`
}
