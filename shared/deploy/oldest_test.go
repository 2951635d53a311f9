package deploy

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"example.com/workbook/shared/config"
)

// An API server of the oldest Kubernetes that the stages are for knows all that the rules of their CRDs use.
func TestRulesCompileInTheOldestKubernetes(t *testing.T) {
	t.Parallel()
	oldest := version.MustParseGeneric(config.Get("OLDEST_KUBERNETES"))
	// In new CRDs an API server takes only what the version before it knows too: it may be rolled back.
	env := environment.MustBaseEnvSet(oldest.SubtractMinor(1))
	stages, err := config.Stages()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range stages {
		if rules := compileRules(t, env, dir); rules == 0 {
			t.Errorf("%s: its CRDs have no rules", dir)
		}
	}
}

// compileRules compiles the rules of a stage's CRDs, and returns their number.
func compileRules(t *testing.T, env *environment.EnvSet, dir string) int {
	t.Helper()
	objects, err := Render(dir, "crd", nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, object := range objects {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
			t.Fatal(err)
		}
		for _, served := range crd.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(served.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			structural, err := schema.NewStructural(&internal)
			if err != nil {
				t.Fatal(err)
			}
			sum += compile(t, env, structural, crd.Spec.Names.Kind, true)
		}
	}
	return sum
}

func compile(t *testing.T, env *environment.EnvSet, at *schema.Structural, path string, root bool) int {
	t.Helper()
	if at == nil {
		return 0
	}
	results, err := cel.Compile(at, model.SchemaDeclType(at, root), celconfig.PerCallLimit, env, cel.NewExpressionsEnvLoader())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	sum := len(results)
	for i, result := range results {
		if result.Error != nil {
			t.Errorf("%s, %s: %s", path, at.XValidations[i].Rule, result.Error.Detail)
		}
		if result.MessageExpressionError != nil {
			t.Errorf("%s, %s: %s", path, at.XValidations[i].MessageExpression, result.MessageExpressionError.Detail)
		}
	}
	for name, property := range at.Properties {
		sum += compile(t, env, &property, path+"."+name, false)
	}
	sum += compile(t, env, at.Items, path+"[]", false)
	if at.AdditionalProperties != nil {
		sum += compile(t, env, at.AdditionalProperties.Structural, path+"{}", false)
	}
	return sum
}
