package conversion

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/api/v1beta1"
)

// errorsOf returns what the API server has against an object of a version: by the schema, by its lists and by its rules.
func errorsOf(t *testing.T, version string) func(t rapid.TB, object any) field.ErrorList {
	t.Helper()
	ctx := t.Context()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "versions", "my.domain_lolcows.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	var props apiextensions.JSONSchemaProps
	for _, v := range crd.Spec.Versions {
		if v.Name != version {
			continue
		}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &props, nil); err != nil {
			t.Fatal(err)
		}
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	openAPI, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	const budget = 10_000_000 // CEL cost units: what the API server spends on one object
	rules := cel.NewValidator(structural, true, budget)
	return func(t rapid.TB, object any) field.ErrorList {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var received map[string]any
		if err := json.Unmarshal(text, &received); err != nil {
			t.Fatal(err)
		}
		errs := validation.ValidateCustomResource(nil, received, openAPI)
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, structural, received)...)
		broken, _ := rules.Validate(ctx, nil, structural, received, nil, budget)
		return append(errs, broken...)
	}
}

// Whatever is in the annotation, a v1alpha1 object that the API server accepts becomes a v1beta1 object that it would
// accept: the API server checks an object in the version of the request only.
func TestTheHubIsValid(t *testing.T) {
	t.Parallel()
	alphaErrors, hubErrors := errorsOf(t, "v1alpha1"), errorsOf(t, "v1beta1")
	rapid.Check(t, func(t *rapid.T) {
		alpha := drawAlpha(t)
		if errs := alphaErrors(t, alpha); len(errs) > 0 {
			t.Fatalf("drawn, but not accepted: %v", errs)
		}
		alpha.Annotations = map[string]string{Annotation: drawAnnotation(t)}
		if errs := hubErrors(t, toHub(t, alpha)); len(errs) > 0 {
			t.Fatalf("the API server would not accept it: %v", errs)
		}
	})
}

// The other round trips begin with objects that the API server accepts.
func TestDrawnHubsAreValid(t *testing.T) {
	t.Parallel()
	errors := errorsOf(t, "v1beta1")
	rapid.Check(t, func(t *rapid.T) {
		hub := drawHub(t)
		if errs := errors(t, hub); len(errs) > 0 {
			t.Fatalf("drawn, but not accepted: %v", errs)
		}
	})
}

// Each rule of v1beta1 rejects what it is there for, and says why.
func TestRulesOfV1beta1(t *testing.T) {
	t.Parallel()
	errors := errorsOf(t, "v1beta1")
	for name, test := range map[string]struct {
		change   func(*v1beta1.LolcowSpec)
		rejected string
	}{
		"as it is":             {func(*v1beta1.LolcowSpec) {}, ""},
		"nothing":              {func(spec *v1beta1.LolcowSpec) { *spec = v1beta1.LolcowSpec{} }, ""},
		"a greeting with NUL":  {func(spec *v1beta1.LolcowSpec) { spec.Greetings[1] = "\x00" }, `spec.greetings[1]: Invalid value: "\x00": must not contain a NUL character`},
		"an empty greeting":    {func(spec *v1beta1.LolcowSpec) { spec.Greetings[1] = "" }, `spec.greetings[1]: Invalid value: "": spec.greetings[1] in body should be at least 1 chars long`},
		"nine greetings":       {func(spec *v1beta1.LolcowSpec) { spec.Greetings = make([]string, 9) }, "spec.greetings: Too many: 9: must have at most 8 items"},
		"no page":              {func(spec *v1beta1.LolcowSpec) { spec.Ports = spec.Ports[:1] }, "spec.ports: Invalid value: must contain a port named page"},
		"a name twice":         {func(spec *v1beta1.LolcowSpec) { spec.Ports = append(spec.Ports, spec.Ports[0]) }, "spec.ports[2]: Duplicate value"},
		"the Service's name":   {func(spec *v1beta1.LolcowSpec) { spec.Ports[0].Name = "http" }, `spec.ports[0].name: Invalid value: "http": must not be http`},
		"white space in image": {func(spec *v1beta1.LolcowSpec) { spec.Image = "a b" }, `spec.image: Invalid value: "a b": must not contain white space`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lolcow := full()
			lolcow.Name = "cow"
			test.change(&lolcow.Spec)
			g := NewWithT(t)
			if test.rejected == "" {
				g.Expect(errors(t, lolcow)).To(BeEmpty())
				return
			}
			g.Expect(errors(t, lolcow).ToAggregate()).To(MatchError(ContainSubstring(test.rejected)))
		})
	}
}
