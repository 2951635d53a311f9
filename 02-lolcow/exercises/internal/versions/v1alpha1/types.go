// Package v1alpha1 is the old version of a small Lolcow, for exercise 26a.
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Lolcow serves a greeting at a port.
type Lolcow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   LolcowSpec   `json:"spec,omitzero"`
	Status LolcowStatus `json:"status,omitzero"`
}

// LolcowSpec is what a user wants.
type LolcowSpec struct {
	Greeting string `json:"greeting,omitempty"`
	// Port is the node port, 30000 to 32767, or 0 if it is unset.
	Port int32 `json:"port,omitempty"`
}

// LolcowStatus is what the operator has observed.
type LolcowStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// DeepCopy returns a copy that shares nothing.
func (l *Lolcow) DeepCopy() *Lolcow {
	out := *l
	l.DeepCopyInto(&out.ObjectMeta)
	return &out
}
