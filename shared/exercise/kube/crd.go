package kube

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"example.com/workbook/shared/exercise/check"
)

// crd is what InstallCRD reads of a manifest.
type crd struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
}

// InstallCRD installs the CRD of a manifest, and waits until each of its versions is served. The exercise needs a server of its own.
func InstallCRD(b *check.B, manifest []byte) {
	var parsed crd
	if err := yaml.Unmarshal(manifest, &parsed); err != nil || len(parsed.Spec.Versions) == 0 {
		b.Fatalf("this is not a CRD: %v", err)
	}
	clientset := Client(b)
	err := clientset.CoreV1().RESTClient().Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/yaml").Body(manifest).Do(b.Context()).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatalf("installing a CRD: %v", err)
	}
	for _, version := range parsed.Spec.Versions {
		if version.Served {
			awaitServed(b, clientset, schema.GroupVersionResource{
				Group: parsed.Spec.Group, Version: version.Name, Resource: parsed.Spec.Names.Plural,
			})
		}
	}
}

func awaitServed(b *check.B, clientset kubernetes.Interface, resource schema.GroupVersionResource) {
	b.Eventually(10*time.Second, func() string {
		err := clientset.CoreV1().RESTClient().Get().AbsPath("/apis", resource.Group, resource.Version, resource.Resource).
			Do(b.Context()).Error()
		if err != nil {
			return "the kind is not served: " + err.Error()
		}
		// A manager whose discovery is too early tries again only after ten seconds.
		kinds, err := clientset.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
		if err != nil || !slices.ContainsFunc(kinds.APIResources, func(kind metav1.APIResource) bool { return kind.Name == resource.Resource }) {
			return "discovery does not list the kind"
		}
		return ""
	})
}
