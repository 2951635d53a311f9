package v1alpha1

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// notOurs are the parts of a schema whose bounds are not ours to set, each with all below it.
var notOurs = []*regexp.Regexp{
	// Types of a pod, which Kubernetes declares, and checks when the DaemonSet is made. The lists of them are ours.
	regexp.MustCompile(`^spec\.resources$`),
	regexp.MustCompile(`^spec\.tolerations\[\]$`),
	regexp.MustCompile(`^spec\.env\[\]\.valueFrom$`),
	// What a worker reports, whatever it is: a status that is rejected would be worse.
	regexp.MustCompile(`^status\.exitCode$`),
	regexp.MustCompile(`^status\.failures\[\]\.exitCode$`),
}

// TestConventions reads the generated CRDs as the API server does: every string, number, list and map of ours
// is bounded (which also keeps CEL rules affordable), every list says how it is merged, every kind has a
// status subresource and conditions keyed by type.
func TestConventions(t *testing.T) {
	t.Parallel()
	for file, crd := range generated(t) {
		for _, version := range crd.Spec.Versions {
			g := NewWithT(t)
			g.Expect(version.Subresources).NotTo(BeNil(), "%s has no status subresource", file)
			g.Expect(version.Subresources.Status).NotTo(BeNil(), "%s has no status subresource", file)
			properties := version.Schema.OpenAPIV3Schema.Properties
			g.Expect(properties["status"].Properties["conditions"].XListMapKeys).To(Equal([]string{"type"}))
			seen := map[*regexp.Regexp]bool{}
			for _, part := range []string{"spec", "status"} {
				checkBounds(t, part, properties[part], seen)
			}
			for _, pattern := range notOurs {
				g.Expect(seen[pattern]).To(BeTrue(), "%s has no %s to leave out", file, pattern)
			}
		}
	}
}

// TestClientSideApply holds the CRDs to the 256 KiB of annotations that an object may have: `kubectl apply`
// without --server-side keeps a copy of the whole object in one. The descriptions of the pod's own types are
// most of it.
func TestClientSideApply(t *testing.T) {
	t.Parallel()
	for file, crd := range generated(t) {
		text, err := json.Marshal(crd)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(text)).To(BeNumerically("<", 256<<10), "%s is too big for kubectl apply", file)
	}
}

func generated(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("not the CRD of one kind: %v, %v", files, err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[file] = &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, out[file]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return out
}

func checkBounds(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps, seen map[*regexp.Regexp]bool) {
	t.Helper()
	for _, pattern := range notOurs {
		if pattern.MatchString(path) {
			seen[pattern] = true
			return
		}
	}
	if problem := unbounded(schema); problem != "" {
		t.Errorf("%s %s", path, problem)
	}
	if schema.Items != nil {
		checkBounds(t, path+"[]", *schema.Items.Schema, seen)
	}
	for name, property := range schema.Properties {
		checkBounds(t, path+"."+name, property, seen)
	}
}

// unbounded says what a schema lacks, or nothing.
func unbounded(schema apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.Type == "":
		return "has no type"
	case schema.Type == "string" && schema.MaxLength == nil && schema.Enum == nil && schema.Format == "":
		return "is a string without a greatest length"
	// What counts generations has a least value only.
	case schema.Type == "integer" && (schema.Minimum == nil || schema.Maximum == nil && schema.Format != "int64"):
		return "is a number without bounds"
	case schema.Type == "array" && (schema.MaxItems == nil || ptr.Deref(schema.XListType, "") == ""):
		return "is a list without a greatest length or a list type"
	// What the strings of a map may be is Kubernetes' to say: they are labels and annotations.
	case schema.AdditionalProperties != nil && schema.MaxProperties == nil:
		return "is a map without a greatest size"
	}
	return ""
}
