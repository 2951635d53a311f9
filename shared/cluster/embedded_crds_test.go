package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const teapots = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: teapots.example.com
spec:
  group: example.com
  names: {kind: Teapot, listKind: TeapotList, plural: teapots, singular: teapot}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object}
`

// addStage writes the CRD of a stage into a folder of the repository.
func addStage(t *testing.T, dir, crd string) {
	t.Helper()
	dir = filepath.Join(dir, "config", "crd")
	err := errors.Join(os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [crd.yaml]\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "crd.yaml"), []byte(crd), 0o644))
	if err != nil {
		t.Fatal(err)
	}
}

// collectsGarbageAtOnce deletes the owner of a ConfigMap, of a stage's kind, right after the start of the cluster. The
// limit is less than the 30 seconds after which the garbage collector looks for new kinds.
func (e embeddedTest) collectsGarbageAtOnce(c Cluster) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 20*time.Second)
	defer cancel()
	cfg, err := c.RESTConfig()
	if err != nil {
		e.t.Fatal(err)
	}
	k, err := client.New(cfg, client.Options{})
	if err != nil {
		e.t.Fatal(err)
	}
	owner := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Teapot",
		"metadata": map[string]any{"name": "brown", "namespace": metav1.NamespaceDefault},
	}}
	if err := k.Create(ctx, owner); err != nil {
		e.t.Fatal(err)
	}
	dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "brown", Namespace: metav1.NamespaceDefault,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Teapot", Name: "brown", UID: owner.GetUID()}},
	}}
	if err := k.Create(ctx, dependent); err != nil {
		e.t.Fatal(err)
	}
	if err := k.Delete(ctx, owner); err != nil {
		e.t.Fatal(err)
	}
	began := time.Now()
	err = poll(ctx, "the dependent to be deleted", func(ctx context.Context) (bool, error) {
		err := k.Get(ctx, client.ObjectKeyFromObject(dependent), dependent)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		e.t.Error(err)
	}
	e.t.Logf("the dependent of a deleted object was deleted after %s", time.Since(began).Round(time.Millisecond))
}

// A stage whose CRD is being written must not keep a cluster from the others.
func (e embeddedTest) saysWhichCRDsAreNotInstalled() {
	e.t.Helper()
	log, err := os.ReadFile(filepath.Join(e.layout.dir, "supervisor.log"))
	if err != nil {
		e.t.Fatal(err)
	}
	if !strings.Contains(string(log), "==> the CRDs of 06-broken are not installed: ") || strings.Contains(string(log), "05-teapot") {
		e.t.Errorf("the supervisor said: %s", log)
	}
}
