package deploy

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// After the variant of an operator that converts, with a caBundle of the operator's own, one without conversions is applied.
func TestVariantWithoutConversionsAfterOneWithThem(t *testing.T) {
	cfg := startAPIServer(t)
	ctx := t.Context()
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	certificate, _, err := certutil.GenerateSelfSignedCertKey("spout", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	crdOf := func(overlay string) *unstructured.Unstructured {
		objects := render(t, overlay, nil)
		return objects[slices.IndexFunc(objects, isCRD)]
	}
	with, without := crdOf("pouring"), crdOf("default")
	if err := Apply(ctx, t.Output(), cfg, []*unstructured.Unstructured{with}); err != nil {
		t.Fatal(err)
	}
	caBundle := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": with.GetAPIVersion(), "kind": with.GetKind(), "metadata": map[string]any{"name": with.GetName()},
		"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(certificate)}}}},
	}}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(caBundle), client.FieldOwner("teapot")); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(without.DeepCopy()), fieldOwner, client.ForceOwnership); err == nil || !strings.Contains(err.Error(), "spec.conversion") {
		t.Errorf("if an apply alone is enough by now, endConversions can go: %v", err)
	}

	// Twice: the second time there is nothing to remove.
	for range 2 {
		if err := Apply(ctx, t.Output(), cfg, []*unstructured.Unstructured{without}); err != nil {
			t.Fatal(err)
		}
	}
	live := without.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(without), live); err != nil {
		t.Fatal(err)
	}
	conversion, _, _ := unstructured.NestedMap(live.Object, "spec", "conversion")
	if conversion["strategy"] != "None" || conversion["webhook"] != nil {
		t.Errorf("the CRD has conversion %v", conversion)
	}
}

// writer passes on what is written.
type writer func(text string)

func (w writer) Write(text []byte) (int, error) { w(string(text)); return len(text), nil }

// Without the operator no object can be listed in another version than the one that is stored.
func TestDeletingSaysThatNothingConverts(t *testing.T) {
	cfg := startAPIServer(t)
	impatient(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	objects := render(t, "pouring", nil)
	crd := objects[slices.IndexFunc(objects, isCRD)]
	setVersions := func(stored string) {
		var versions []any
		for _, name := range []string{"v1", "v2"} {
			versions = append(versions, map[string]any{
				"name": name, "served": true, "storage": name == stored,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			})
		}
		crd.Object["spec"].(map[string]any)["versions"] = versions
	}
	setVersions("v1")
	if err := Apply(ctx, t.Output(), cfg, []*unstructured.Unstructured{crd}); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, newTeapot()); err != nil {
		t.Fatal(err)
	}

	setVersions("v2")
	found := false
	err = Delete(ctx, writer(func(text string) {
		if strings.Contains(text, "every Teapot to be gone") && strings.Contains(text, "the operator converts these objects") {
			found = true
			cancel()
		}
	}), cfg, []*unstructured.Unstructured{crd})
	if !found {
		t.Errorf("it was not said why nothing is deleted: %v", err)
	}
}

func TestOnlyAConversionIsExplained(t *testing.T) {
	for _, text := range []string{"", "connection refused"} {
		if said := explained(text); said != text {
			t.Errorf("got %q", said)
		}
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "NamespaceDeletionContentFailure", "status": "True", "message": "Failed to delete: conversion webhook for example.com/v1, Kind=Teapot failed",
	}}}}}
	if said := contentOf(namespace); !strings.Contains(said, "Kind=Teapot failed; the operator converts") {
		t.Errorf("got %q", said)
	}
}
