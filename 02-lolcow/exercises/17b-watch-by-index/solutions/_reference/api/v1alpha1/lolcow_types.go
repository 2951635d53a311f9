/*
Copyright 2026.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// LolcowSpec defines the desired state of Lolcow.
type LolcowSpec struct {
	// greeting is what the cow says.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Greeting string `json:"greeting,omitempty"`

	// greetingConfigMap is the name of a ConfigMap in the same namespace. Its key greeting takes the place of spec.greeting.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	GreetingConfigMap string `json:"greetingConfigMap,omitempty"`

	// port is the node port at which the greeting is served. If it is unset, the cluster picks one.
	// +optional
	// +kubebuilder:validation:Minimum=30000
	// +kubebuilder:validation:Maximum=32767
	Port *int32 `json:"port,omitempty"`

	// replicas is the number of pods. It is a pointer: without one, Go could not write 0.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`
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

	// metadata is a standard object metadata
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec defines the desired state of Lolcow
	// +required
	Spec LolcowSpec `json:"spec"`

	// status defines the observed state of Lolcow
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
