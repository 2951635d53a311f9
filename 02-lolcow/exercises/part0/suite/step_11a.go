package suite

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// read returns the files of a folder that end in .yaml, without what kustomize reads.
func (s *suite) read(b *check.B, folder string) map[string][]byte {
	files, err := fs.Glob(s.project.Files, folder+"/*.yaml")
	if err != nil {
		b.Fatalf("%v", err)
	}
	content := map[string][]byte{}
	for _, file := range files {
		if path.Base(file) == "kustomization.yaml" {
			continue
		}
		if content[file], err = fs.ReadFile(s.project.Files, file); err != nil {
			b.Fatalf("%v", err)
		}
	}
	return content
}

// installCRD installs the CRDs of the project.
func (s *suite) installCRD(b *check.B) {
	files := s.read(b, "config/crd/bases")
	if len(files) == 0 {
		b.Fatalf("no CRD is in config/crd/bases: controller-gen writes it, by scripts/my-lolcow.sh generate")
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	found := false
	for file, content := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			b.Fatalf("%s: %v", file, err)
		}
		found = found || crd.Spec.Group == lolcowKind.Group && crd.Spec.Names.Kind == lolcowKind.Kind
		crds = append(crds, crd)
	}
	if !found {
		b.Fatalf("no CRD of the kind Lolcow in the group my.domain is in config/crd/bases")
	}
	if _, err := envtest.InstallCRDs(kube.Config(b), envtest.CRDInstallOptions{CRDs: crds}); err != nil {
		b.Fatalf("%v", err)
	}
}

// types are the behaviours of step 11a: what the API server does with a Lolcow, without any controller.
func (s *suite) types() {
	s.reconciles("a Lolcow is in a namespace, and the API server serves it as lolcows", (*env).served)
	s.reconciles("a Lolcow with a greeting, a port and a number of replicas is accepted, and stored as it is", func(e *env) {
		e.create("cow", fields{"greeting": "Moo", "port": int64(30085), "replicas": int64(3)})
		e.expectSpec("greeting", "Moo")
		e.expectSpec("port", int64(30085))
		e.expectSpec("replicas", int64(3))
	})
	s.reconciles("a Lolcow with an empty spec is accepted, and has one replica", func(e *env) {
		e.create("cow", fields{})
		e.expectSpec("replicas", int64(1))
		for _, field := range []string{"greeting", "port"} {
			got, found, err := unstructured.NestedFieldNoCopy(e.lolcow("cow").Object, "spec", field)
			e.must(err, "reading spec."+field)
			if found && got != "" {
				e.Errorf("spec.%s is unset, and stored as %v: the CRD has a default for it", field, got)
			}
		}
	})
	s.reconciles("a spec out of bounds is rejected, with the name of the field", (*env).bounds)
	s.reconciles("replicas: 0, written by a Go program, stays 0", func(e *env) {
		e.createTyped("spec: {replicas: 0}")
		e.expectSpec("replicas", int64(0))
	})
	s.reconciles("replicas that a Go program does not set are unset: the Lolcow has one", func(e *env) {
		e.createTyped("spec: {greeting: Moo}")
		e.expectSpec("replicas", int64(1))
	})
	s.reconciles("the status is a subresource: writing it leaves the spec and its generation as they are", (*env).statusSubresource)
	s.samples()
}

// createTyped creates the Lolcow cow as a Go program does, by the type of the project.
func (e *env) createTyped(manifest string) {
	object, err := e.suite.scheme.New(lolcowKind)
	e.must(err, "making a Lolcow by the Go type of the project")
	typed := object.(client.Object)
	e.must(yaml.Unmarshal([]byte(manifest), typed), "decoding a Lolcow")
	typed.SetName("cow")
	typed.SetNamespace(e.namespace)
	e.must(e.client.Create(e.Context(), typed), "creating a Lolcow from Go")
}

// served looks for the resource of the kind Lolcow, as kubectl does. The steps that follow know it by its name.
func (e *env) served() {
	mapping, err := e.client.RESTMapper().RESTMapping(lolcowKind.GroupKind(), lolcowKind.Version)
	e.must(err, "looking for the resource of the kind Lolcow")
	if resource, scope := mapping.Resource.Resource, mapping.Scope.Name(); resource != "lolcows" || scope != apimeta.RESTScopeNameNamespace {
		e.Fatalf("the resource is %s, its scope is %s; those of the scaffold are lolcows and %s", resource, scope, apimeta.RESTScopeNameNamespace)
	}
}

// samplePort is the node port of the sample that the reader applies.
const samplePort = 30685

func (s *suite) samples() {
	s.reconciles("the samples in config/samples are accepted", func(e *env) {
		var ports []any
		for file, content := range s.read(e.B, "config/samples") {
			object := &unstructured.Unstructured{}
			e.must(yaml.Unmarshal(content, &object.Object), "reading "+file)
			if object.GroupVersionKind() != lolcowKind {
				continue
			}
			object.SetNamespace(e.namespace)
			strict := client.WithFieldValidation(e.client, client.FieldValidation(metav1.FieldValidationStrict))
			if err := strict.Create(e.Context(), object); err != nil {
				e.Errorf("%s: %v", file, err)
			}
			greeting, _, _ := unstructured.NestedString(object.Object, "spec", "greeting")
			if port, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "port"); greeting != "" && found {
				ports = append(ports, port)
			}
		}
		switch {
		case len(ports) == 0:
			e.Fatalf("no sample in config/samples has a greeting and a port")
		case !slices.Contains(ports, any(int64(samplePort))):
			e.Fatalf("no sample in config/samples has a greeting and the port %d", samplePort)
		}
	})
}

// expectSpec asserts the value of one field of the spec of the Lolcow cow.
func (e *env) expectSpec(field string, value any) {
	e.Helper()
	got, found, err := unstructured.NestedFieldNoCopy(e.lolcow("cow").Object, "spec", field)
	e.must(err, "reading spec."+field)
	if !found {
		got = "missing"
	}
	if got != value {
		e.Errorf("spec.%s is %v; expected %v", field, got, value)
	}
}

// bounds creates Lolcows beyond the bounds, and at them.
func (e *env) bounds() {
	for _, one := range []struct {
		field string
		value any
		is    string
	}{
		{"greeting", strings.Repeat("m", 1025), "a greeting of 1025 characters"},
		{"port", int64(29999), "the port 29999"},
		{"port", int64(32768), "the port 32768"},
		{"port", "http", "a port that is a text"},
		{"replicas", int64(-1), "-1 replicas"},
		{"replicas", int64(11), "11 replicas"},
		{"greeting", int64(7), "a greeting that is a number"},
	} {
		err := e.client.Create(e.Context(), e.newLolcow("cow", fields{one.field: one.value}))
		switch {
		case err == nil:
			e.Fatalf("%s is accepted", one.is)
		case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec."+one.field):
			e.Fatalf("%s is rejected with another message: %v", one.is, err)
		}
	}
	for i, one := range []struct {
		field string
		value any
		is    string
	}{
		{"greeting", "", "an empty greeting"},
		{"greeting", "Muh 🐄\nMuh", "a greeting of two lines and a picture"},
		{"greeting", strings.Repeat("m", 1024), "a greeting of 1024 characters"},
		{"port", int64(30000), "the port 30000"},
		{"port", int64(32767), "the port 32767"},
		{"replicas", int64(10), "a number of 10 replicas"},
	} {
		object := e.newLolcow(fmt.Sprintf("bound-%d", i), fields{one.field: one.value})
		if err := e.client.Create(e.Context(), object); err != nil {
			e.Fatalf("%s is within the bounds, and is rejected: %s", one.is, err)
		}
	}
}

// statusSubresource writes a condition and another greeting to the status.
func (e *env) statusSubresource() {
	e.create("cow", fields{"greeting": "Moo"})
	before := e.lolcow("cow")
	after := before.DeepCopy()

	e.must(unstructured.SetNestedField(after.Object, "Baa", "spec", "greeting"), "changing the spec")
	ready := map[string]any{
		"type": "Ready", "status": "False", "reason": "Trying", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}
	e.must(unstructured.SetNestedSlice(after.Object, []any{ready}, "status", "conditions"), "setting a condition")
	err := e.client.Status().Update(e.Context(), after)
	if apierrors.IsNotFound(err) {
		e.Fatalf("the API server has no status of a Lolcow that could be written apart from the spec: 404")
	}
	e.must(err, "writing a condition to the status")
	e.expectSpec("greeting", "Moo")
	if e.condition("cow", "Ready").Reason != "Trying" {
		e.Fatalf("the condition that was written to the status is not stored")
	}
	if e.lolcow("cow").GetGeneration() != before.GetGeneration() {
		e.Fatalf("writing the status has changed metadata.generation")
	}
	e.must(unstructured.SetNestedSlice(after.Object, []any{ready, ready}, "status", "conditions"), "setting a condition twice")
	if err := e.client.Status().Update(e.Context(), after); !apierrors.IsInvalid(err) {
		e.Fatalf("status.conditions may have two conditions of the same type: it is not the list that the scaffold had")
	}
}
