package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "samplecontroller.example.com", Version: "v1alpha1"}

	// SchemeGroupVersion is GroupVersion under the name that the generated clients call it by.
	SchemeGroupVersion = GroupVersion

	// SchemeBuilder collects the functions that tell a scheme about these kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme makes these kinds known to a scheme, and so to clients and caches built on it.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group and resource of a plural name of this package; generated listers name it in
// their errors.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// addKnownTypes lists the kinds. Where the kubebuilder CLI adds one, it writes a line for the older
// scheme.Builder of controller-runtime, SchemeBuilder.Register(&Kind{}, &KindList{}): delete that line and
// name the two types here.
func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
