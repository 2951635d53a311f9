package kube

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
			Name string `json:"name"`
		} `json:"versions"`
	} `json:"spec"`
}

// InstallCRD installs the CRD of a manifest, and waits until its kind is served. The exercise needs a server of its own.
func InstallCRD(b *check.B, manifest []byte) {
	var parsed crd
	if err := yaml.Unmarshal(manifest, &parsed); err != nil || len(parsed.Spec.Versions) == 0 {
		b.Fatalf("this is not a CRD: %v", err)
	}
	clientset := Client(b)
	client := clientset.CoreV1().RESTClient()
	err := client.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/yaml").Body(manifest).Do(b.Context()).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatalf("installing a CRD: %v", err)
	}
	version := schema.GroupVersion{Group: parsed.Spec.Group, Version: parsed.Spec.Versions[0].Name}
	b.Eventually(10*time.Second, func() string {
		if err := client.Get().AbsPath("/apis", version.Group, version.Version, parsed.Spec.Names.Plural).Do(b.Context()).Error(); err != nil {
			return "the kind is not served: " + err.Error()
		}
		// A manager whose discovery is too early tries again only after ten seconds.
		kinds, err := clientset.Discovery().ServerResourcesForGroupVersion(version.String())
		if err != nil || !slices.ContainsFunc(kinds.APIResources, func(kind metav1.APIResource) bool { return kind.Name == parsed.Spec.Names.Plural }) {
			return "discovery does not list the kind"
		}
		return ""
	})
}
