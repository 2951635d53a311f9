package migrate

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

var kettles = schema.GroupVersionResource{Group: "kitchen.example.com", Version: "v1beta1", Resource: "kettles"}

// Migrate has all Kettles stored as v1beta1, and takes v1alpha1 out of service.
func Migrate(ctx context.Context, config *rest.Config) error {
	extensions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	crds := extensions.ApiextensionsV1().CustomResourceDefinitions()
	crd, err := crds.Get(ctx, "kettles.kitchen.example.com", metav1.GetOptions{})
	if err != nil {
		return err
	}
	// From here on no client can write in v1alpha1, and what is written is stored as v1beta1.
	useOnly(crd, "v1beta1")
	if crd, err = crds.Update(ctx, crd, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for token := ""; ; {
		page, err := objects.Resource(kettles).List(ctx, metav1.ListOptions{Limit: 500, Continue: token})
		if err != nil {
			return err
		}
		for _, kettle := range page.Items {
			if err := rewrite(ctx, objects.Resource(kettles).Namespace(kettle.GetNamespace()), kettle.GetName()); err != nil {
				return err
			}
		}
		if token = page.GetContinue(); token == "" {
			break
		}
	}
	crd.Status.StoredVersions = []string{"v1beta1"}
	_, err = crds.UpdateStatus(ctx, crd, metav1.UpdateOptions{})
	return err
}

// useOnly has a CRD serve and store one of its versions.
func useOnly(crd *apiextensionsv1.CustomResourceDefinition, name string) {
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		version.Served, version.Storage = version.Name == name, version.Name == name
	}
}

// rewrite writes a Kettle as it is. Only its managedFields are said to be those of v1beta1, which has the same fields.
func rewrite(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		kettle, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		entries := kettle.GetManagedFields()
		for i := range entries {
			entries[i].APIVersion = kettles.GroupVersion().String()
		}
		kettle.SetManagedFields(entries)
		_, err = client.Update(ctx, kettle, metav1.UpdateOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil // there is nothing left to migrate
	}
	return err
}
