package subject

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply writes a Deployment with server-side apply, which creates it if it is not there.
func (o *Operator) apply(ctx context.Context, desired *appsv1.Deployment) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return err
	}
	delete(content, "status")
	configuration := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
	return o.client.Apply(ctx, configuration, client.FieldOwner("lolcow"), client.ForceOwnership)
}
