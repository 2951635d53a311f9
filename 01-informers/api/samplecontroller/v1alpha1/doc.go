// The generators of client-go read the markers below in a file of this name only; without them the clients
// would send requests to the group "samplecontroller". groupGoName is the name of the group in Go.

// Package v1alpha1 is the API samplecontroller.example.com/v1alpha1: the kind Foo.
// +kubebuilder:object:generate=true
// +groupName=samplecontroller.example.com
// +groupGoName=Foo
package v1alpha1
