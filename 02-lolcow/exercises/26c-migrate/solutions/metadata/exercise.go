package migrate

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var kettle = schema.GroupVersionKind{Group: "kitchen.example.com", Version: "v1beta1", Kind: "Kettle"}

// Migrate has all Kettles stored as v1beta1, and takes v1alpha1 out of service.
func Migrate(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, types.NamespacedName{Name: "kettles.kitchen.example.com"}, crd); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(crd.DeepCopy(), client.MergeFromWithOptimisticLock{})
	for i := range crd.Spec.Versions {
		is := crd.Spec.Versions[i].Name == kettle.Version
		crd.Spec.Versions[i].Served, crd.Spec.Versions[i].Storage = is, is
	}
	if err := c.Patch(ctx, crd, patch); err != nil {
		return err
	}
	if err := rewriteAll(ctx, c); err != nil {
		return err
	}
	patch = client.MergeFromWithOptions(crd.DeepCopy(), client.MergeFromWithOptimisticLock{})
	crd.Status.StoredVersions = []string{kettle.Version}
	return c.Status().Patch(ctx, crd, patch)
}

// rewriteAll lists the metadata of Kettles, in parts.
func rewriteAll(ctx context.Context, c client.Client) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kettle.GroupVersion().WithKind("KettleList"))
	for {
		if err := c.List(ctx, list, client.Limit(500), client.Continue(list.Continue)); err != nil {
			return err
		}
		for i := range list.Items {
			if err := rewrite(ctx, c, &list.Items[i]); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}

// rewrite patches the managedFields of a Kettle that is as old as they are. Each patch, even one that changes nothing, has the API server
// store the object in the new version.
func rewrite(ctx context.Context, c client.Client, object *metav1.PartialObjectMetadata) error {
	object.SetGroupVersionKind(kettle)
	for {
		patch := client.MergeFromWithOptions(object.DeepCopy(), client.MergeFromWithOptimisticLock{})
		for i := range object.ManagedFields {
			object.ManagedFields[i].APIVersion = kettle.GroupVersion().String()
		}
		err := c.Patch(ctx, object, patch)
		if !apierrors.IsConflict(err) {
			return err
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
	}
}
