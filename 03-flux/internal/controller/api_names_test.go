package controller

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"sigs.k8s.io/yaml"
)

// A Flux whose name is longer than the current rule allows was created under an older CRD. It can still be updated,
// including its status, which the API server validates together with the whole object.
func TestLongNamesOfOlderObjectsAreKept(t *testing.T) {
	t.Parallel()
	const budget = 1_000_000 // CEL cost units, more than enough
	for _, file := range []string{"flux-framework.org_fluxes.yaml", "flux-framework.org_fluxsetups.yaml"} {
		g := NewWithT(t)
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", file))
		g.Expect(err).NotTo(HaveOccurred())
		var crd apiextensionsv1.CustomResourceDefinition
		g.Expect(yaml.Unmarshal(text, &crd)).To(Succeed())
		var internal apiextensions.JSONSchemaProps
		g.Expect(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil)).To(Succeed())
		// Only the rules of the object itself, not of its fields.
		root, err := schema.NewStructural(&apiextensions.JSONSchemaProps{Type: "object", XValidations: internal.XValidations, Properties: map[string]apiextensions.JSONSchemaProps{
			"spec": {Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"size": {Type: "integer"}}},
		}})
		g.Expect(err).NotTo(HaveOccurred())
		validator := cel.NewValidator(root, true, budget)
		object := map[string]any{"metadata": map[string]any{"name": letters(57)}, "spec": map[string]any{"size": int64(1)}}
		created, _ := validator.Validate(t.Context(), nil, root, object, nil, budget)
		g.Expect(created).To(HaveLen(1), file)
		g.Expect(created[0].Error()).To(ContainSubstring("must be at most 63 characters"))
		updated, _ := validator.Validate(t.Context(), nil, root, object, object, budget)
		g.Expect(updated).To(BeEmpty(), file)
	}
}
