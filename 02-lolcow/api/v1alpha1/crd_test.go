package v1alpha1

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// TestConventions reads the generated CRDs as the API server does: every string, number and list of ours
// is bounded (which also keeps CEL rules affordable), every list says how it is merged, every kind has a
// status subresource and conditions keyed by type.
func TestConventions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "*", "*_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs to check: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			g := NewWithT(t)
			g.Expect(version.Subresources).NotTo(BeNil(), "%s has no status subresource", file)
			g.Expect(version.Subresources.Status).NotTo(BeNil(), "%s has no status subresource", file)
			properties := version.Schema.OpenAPIV3Schema.Properties
			g.Expect(properties["status"].Properties["conditions"].XListMapKeys).To(Equal([]string{"type"}))
			for _, part := range []string{"spec", "status"} {
				checkBounds(t, part, properties[part])
			}
		}
	}
}

func checkBounds(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	switch schema.Type {
	case "string":
		if schema.MaxLength == nil && schema.Enum == nil && schema.Format == "" {
			t.Errorf("%s is a string without a greatest length", path)
		}
	case "integer":
		// metav1.Condition is not ours to bound: its generation has a least value only.
		if schema.Minimum == nil || (schema.Maximum == nil && schema.Format != "int64") {
			t.Errorf("%s is a number without bounds", path)
		}
	case "array":
		if schema.MaxItems == nil || ptr.Deref(schema.XListType, "") == "" {
			t.Errorf("%s is a list without a greatest length or a list type", path)
		}
		checkBounds(t, path+"[]", *schema.Items.Schema)
	case "object":
		for name, property := range schema.Properties {
			checkBounds(t, path+"."+name, property)
		}
	default:
		t.Errorf("%s has no type", path)
	}
}
