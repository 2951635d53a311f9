package stalecrd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is an API server without the CRD of Lolcow.
type scene struct {
	b     *check.B
	entry Entry
	wire  *kube.Wire
	crds  typed.CustomResourceDefinitionInterface
	rest  rest.Interface
	// crd is the current one.
	crd *apiextensionsv1.CustomResourceDefinition
}

func newScene(b *check.B, work check.Work[Entry]) *scene {
	client, err := apiextensions.NewForConfig(kube.Config(b))
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	s := &scene{
		b: b, entry: work.Entry, wire: kube.NewWire(b), crd: &apiextensionsv1.CustomResourceDefinition{},
		crds: client.ApiextensionsV1().CustomResourceDefinitions(), rest: kube.Client(b).CoreV1().RESTClient(),
	}
	if err := yaml.Unmarshal(lab.CRD(b, work.Dir), s.crd); err != nil {
		b.Fatalf("the CRD of Lolcow: %v", err)
	}
	s.uninstall()
	return s
}

// uninstall deletes the CRD, and waits until it is gone.
func (s *scene) uninstall() {
	s.b.Eventually(patience, func() string {
		err := s.crds.Delete(s.b.Context(), s.crd.Name, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the CRD is not deleted: %v", err)
		}
		return ""
	})
	s.await(nil)
}

// install creates the CRD, or updates it, and waits until the API server serves what it says.
func (s *scene) install(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, version := range crd.Spec.Versions {
		s.b.Event("the CRD has the version %s, served: %t, with spec.port: %t", version.Name, version.Served, hasPort(version))
	}
	crd = crd.DeepCopy()
	live, err := s.crds.Get(s.b.Context(), crd.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = s.crds.Create(s.b.Context(), crd, metav1.CreateOptions{})
	case err == nil:
		crd.ResourceVersion = live.ResourceVersion
		_, err = s.crds.Update(s.b.Context(), crd, metav1.UpdateOptions{})
	}
	if err != nil {
		s.b.Fatalf("installing a CRD: %v", err)
	}
	s.awaitCondition(crd.Name, func(live *apiextensionsv1.CustomResourceDefinition) bool {
		return apihelpers.IsCRDConditionTrue(live, apiextensionsv1.Established)
	})
	s.await(crd.Spec.Versions)
}

// installInVain installs the CRD when another one has its short name.
func (s *scene) installInVain() {
	other := withoutPort(s.crd, "spec", "status")
	other.Name = "oldcows.my.domain"
	other.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "oldcows", Kind: "Oldcow", ShortNames: s.crd.Spec.Names.ShortNames}
	s.b.Event("the CRD %s has the short name of Lolcows", other.Name)
	s.b.Cleanup(func() { _ = s.crds.Delete(context.WithoutCancel(s.b.Context()), other.Name, metav1.DeleteOptions{}) })
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{other, s.crd} {
		if _, err := s.crds.Create(s.b.Context(), crd.DeepCopy(), metav1.CreateOptions{}); err != nil {
			s.b.Fatalf("installing a CRD: %v", err)
		}
		s.awaitCondition(crd.Name, func(live *apiextensionsv1.CustomResourceDefinition) bool {
			condition := apihelpers.FindCRDCondition(live, apiextensionsv1.NamesAccepted)
			return condition != nil && (condition.Status == apiextensionsv1.ConditionTrue) == (crd == other)
		})
	}
}

// awaitCondition waits until the API server has decided about a CRD.
func (s *scene) awaitCondition(name string, decided func(*apiextensionsv1.CustomResourceDefinition) bool) {
	s.b.Eventually(patience, func() string {
		live, err := s.crds.Get(s.b.Context(), name, metav1.GetOptions{})
		if err != nil || !decided(live) {
			return "the API server has not decided about the names of a CRD"
		}
		return ""
	})
}

// await waits until v1alpha1 is served as these versions say: by validation, by discovery and by its document.
func (s *scene) await(versions []apiextensionsv1.CustomResourceDefinitionVersion) {
	served, port := false, false
	for _, version := range versions {
		if version.Name == "v1alpha1" {
			served, port = version.Served, version.Served && hasPort(version)
		}
	}
	s.b.Eventually(patience, func() string {
		switch {
		case s.discovered() != served:
			return "the API server does not serve the versions of the CRD"
		case s.documented() != port:
			return "the document of the API server is not about the CRD"
		case s.keepsPort() != port:
			return "the API server does not use the schema of the CRD"
		}
		return ""
	})
}

const group = "/apis/my.domain/v1alpha1"

func (s *scene) discovered() bool {
	content, err := s.rest.Get().AbsPath(group).Do(s.b.Context()).Raw()
	return err == nil && strings.Contains(string(content), `"Lolcow"`)
}

// documented says whether spec has a port in the document of OpenAPI.
func (s *scene) documented() bool {
	content, err := s.rest.Get().AbsPath("/openapi/v3" + group).Do(s.b.Context()).Raw()
	if err != nil {
		return false
	}
	type schema struct {
		Properties map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"properties"`
	}
	var document struct {
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	// For a moment after a change the document is empty.
	if err := json.Unmarshal(content, &document); err != nil {
		return false
	}
	for name, one := range document.Components.Schemas {
		if strings.HasSuffix(name, ".Lolcow") {
			return one.Properties["spec"].Properties["port"] != nil
		}
	}
	return false
}

// keepsPort says whether the port of a Lolcow comes back, of which nothing is stored.
func (s *scene) keepsPort() bool {
	content, err := s.rest.Post().AbsPath(group, "namespaces", "default", "lolcows").Param("dryRun", "All").
		SetHeader("Content-Type", "application/json").
		Body([]byte(`{"apiVersion":"my.domain/v1alpha1","kind":"Lolcow","metadata":{"name":"check"},"spec":{"port":30000}}`)).
		Do(s.b.Context()).Raw()
	return err == nil && strings.Contains(string(content), `"port":30000`)
}

// expectEmpty asserts that there is no Lolcow.
func (s *scene) expectEmpty(crd string) {
	content, err := s.rest.Get().AbsPath(group, "lolcows").Do(s.b.Context()).Raw()
	var list metav1.PartialObjectMetadataList
	if err == nil {
		err = json.Unmarshal(content, &list)
	}
	if err != nil {
		s.b.Fatalf("listing Lolcows: %v", err)
	}
	if len(list.Items) > 0 {
		s.b.Fatalf("with %s, CheckSchema has left %d Lolcow in the cluster", crd, len(list.Items))
	}
}

func hasPort(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
	_, found := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["port"]
	return found
}

// withoutPort is a CRD in which the spec, or the status, has no port yet.
func withoutPort(crd *apiextensionsv1.CustomResourceDefinition, in ...string) *apiextensionsv1.CustomResourceDefinition {
	old := crd.DeepCopy()
	for _, field := range in {
		delete(old.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[field].Properties, "port")
	}
	// The column would lead to a field that does not exist.
	old.Spec.Versions[0].AdditionalPrinterColumns = nil
	return old
}

// withNewer adds the version of another CRD, under the name v1beta1.
func withNewer(crd, newer *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	both := crd.DeepCopy()
	version := newer.DeepCopy().Spec.Versions[0]
	version.Name = "v1beta1"
	// It is the first, and it is stored: neither makes it the one that the operator uses.
	both.Spec.Versions[0].Storage = false
	both.Spec.Versions = slices.Insert(both.Spec.Versions, 0, version)
	return both
}

// notServed does not serve the last version any more.
func notServed(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	other := crd.DeepCopy()
	other.Spec.Versions[len(other.Spec.Versions)-1].Served = false
	return other
}
