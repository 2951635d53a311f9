// Package v1beta1 is the new version of a small Lolcow, for exercises 26a and 26b.
package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is that of the kind.
var SchemeGroupVersion = schema.GroupVersion{Group: "my.domain", Version: "v1beta1"}

// AddToScheme makes the kind known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Lolcow{}, &LolcowList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// PagePort is the name of the port that v1alpha1 knows.
const PagePort = "page"

// Lolcow serves a greeting at several ports.
type Lolcow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   LolcowSpec   `json:"spec,omitzero"`
	Status LolcowStatus `json:"status,omitzero"`
}

// LolcowSpec is what a user wants.
type LolcowSpec struct {
	Greeting string       `json:"greeting,omitempty"`
	Ports    []LolcowPort `json:"ports,omitempty"`
}

// LolcowPort is one of at most four.
type LolcowPort struct {
	// Name is different from those of the other ports.
	Name string `json:"name"`
	// Port is the node port, 30000 to 32767.
	Port int32 `json:"port"`
}

// LolcowStatus is what the operator has observed.
type LolcowStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// LolcowList is a list of Lolcows.
type LolcowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Lolcow `json:"items"`
}

// DeepCopy returns a copy that shares nothing.
func (l *Lolcow) DeepCopy() *Lolcow {
	out := *l
	l.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Ports = slices.Clone(l.Spec.Ports)
	return &out
}

// DeepCopyObject is DeepCopy for clients.
func (l *Lolcow) DeepCopyObject() runtime.Object { return l.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing.
func (l *LolcowList) DeepCopyObject() runtime.Object {
	out := &LolcowList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
