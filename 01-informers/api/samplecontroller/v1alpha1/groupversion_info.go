package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// SchemeGroupVersion is the group and version of every kind in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: "samplecontroller.example.com", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add these kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds these kinds to a scheme, and so to the clients and caches that use it.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group and resource of a plural name of this package; generated listers name it in
// their errors.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// addKnownTypes adds the kinds of this package to a scheme. The kubebuilder CLI adds another kind in the file of its types,
// by SchemeBuilder.Register.
func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
