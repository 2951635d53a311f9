// Package v1beta1 is the API my.domain/v1beta1: the kind Lolcow.
// +kubebuilder:object:generate=true
// +groupName=my.domain
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// SchemeGroupVersion is the group and version of every kind in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: "my.domain", Version: "v1beta1"}

	// SchemeBuilder collects the functions that tell a scheme about these kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme makes these kinds known to a scheme, and so to clients and caches built on it.
	AddToScheme = SchemeBuilder.AddToScheme
)

// addKnownTypes adds the kinds of this package to a scheme. The kubebuilder CLI adds another kind in the file of its types,
// by SchemeBuilder.Register.
func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Lolcow{}, &LolcowList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
