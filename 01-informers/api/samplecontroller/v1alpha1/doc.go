// The generators of client-go read the markers below in a file of this name only; without them the clients
// would speak to the group "samplecontroller". groupGoName is what they call the group in Go.

// Package v1alpha1 is the API samplecontroller.example.com/v1alpha1: the kind Foo.
// +kubebuilder:object:generate=true
// +groupName=samplecontroller.example.com
// +groupGoName=Foo
package v1alpha1
