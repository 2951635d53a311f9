package validator

import (
	"encoding/json"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// stored are Lolcows from before the rules.
type stored struct {
	namespace string
	first     int32
}

// scene is the one that the Lolcows are in.
func (o *stored) scene(b *check.B) *scene {
	s := newScene(b)
	s.namespace, s.first = o.namespace, o.first
	return s
}

// install installs crd.yaml without its rules, creates Lolcows that break them, and then installs the rules.
func (o *stored) install(b *check.B, dir string) {
	file, err := os.ReadFile(filepath.Join(dir, "crd.yaml"))
	if err != nil {
		b.Fatalf("crd.yaml: %v", err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(file, &crd); err != nil {
		b.Fatalf("crd.yaml: %v", err)
	}
	kube.InstallCRD(b, encode(b, withoutRules(crd)))
	s := newScene(b)
	o.namespace, o.first = s.namespace, s.first
	s.accepted("a Lolcow from before the rules", s.create("nameless", "api", "admin"))
	s.accepted("a Lolcow from before the rules", s.createWith("twice", port("page", s.number(2)), port("api", s.number(2))))
	s.accepted("a Lolcow from before the rules", s.createWith("other", port("api", s.number(3))))

	b.Event("the rules of crd.yaml are added")
	update(b, crd)
	b.Eventually(patience, func() string {
		if !usesRules(s) {
			return "the API server does not use the schema of crd.yaml"
		}
		return ""
	})
}

// probe is a field of the spec that only the CRD with the rules has.
const probe = "probe"

func update(b *check.B, crd map[string]any) {
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	version, _ := versions[0].(map[string]any) // the API server has accepted it without rules
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", probe, "type"}
	if err := unstructured.SetNestedField(version, "boolean", path...); err != nil {
		b.Fatalf("crd.yaml has no schema of a spec: %v", err)
	}
	crd["spec"].(map[string]any)["versions"] = versions
	name, _, _ := unstructured.NestedString(crd, "metadata", "name")
	err := kube.Client(b).CoreV1().RESTClient().Patch("application/merge-patch+json").
		AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", name).
		Body(encode(b, crd)).Do(b.Context()).Error()
	if err != nil {
		b.Fatalf("the API server rejects crd.yaml: %v", err)
	}
}

// usesRules asks for a Lolcow with the field, of which nothing is stored.
func usesRules(s *scene) bool {
	content, err := kube.Client(s.b).CoreV1().RESTClient().Post().
		AbsPath("/apis", v1beta1.SchemeGroupVersion.Group, v1beta1.SchemeGroupVersion.Version, "namespaces", s.namespace, "lolcows").
		Param("dryRun", "All").SetHeader("Content-Type", "application/json").
		Body([]byte(`{"apiVersion":"my.domain/v1beta1","kind":"Lolcow","metadata":{"name":"probe"},"spec":{"probe":true}}`)).
		Do(s.b.Context()).Raw()
	if apierrors.IsInvalid(err) {
		return true // only a rule does that
	}
	var lolcow unstructured.Unstructured
	if err != nil || json.Unmarshal(content, &lolcow.Object) != nil {
		return false
	}
	_, found, _ := unstructured.NestedBool(lolcow.Object, "spec", probe)
	return found
}

// withoutRules is a copy of a manifest in which no schema has rules.
func withoutRules(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, one := range value {
			if key != "x-kubernetes-validations" {
				out[key] = withoutRules(one)
			}
		}
		return out
	case []any:
		var out []any
		for _, one := range value {
			out = append(out, withoutRules(one))
		}
		return out
	}
	return value
}

func encode(b *check.B, object any) []byte {
	content, err := json.Marshal(object)
	if err != nil {
		b.Fatalf("crd.yaml: %v", err)
	}
	return content
}
