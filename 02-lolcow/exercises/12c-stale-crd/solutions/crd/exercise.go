package stalecrd

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// CheckSchema returns an error if the API server does not serve Lolcows with a port.
func CheckSchema(ctx context.Context, config *rest.Config) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, "lolcows.my.domain", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the CRD of Lolcow: %w", err)
	}
	// A CRD whose names belong to another one is there, and nothing of it is served.
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		return errors.New("the CRD of Lolcow is not established")
	}
	for _, version := range crd.Spec.Versions {
		if version.Name != "v1alpha1" || !version.Served {
			continue
		}
		if _, found := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["port"]; !found {
			return errors.New("the CRD of Lolcow is older than this operator: v1alpha1 has no spec.port; install the CRD again")
		}
		return nil
	}
	return errors.New("the CRD of Lolcow does not serve v1alpha1")
}
