package deploy

import (
	"context"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/workbook/shared/binaries"
)

// startAPIServer starts an API server without controllers: CRDs work there, Deployments never
// become available.
func startAPIServer(t *testing.T) *rest.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server")
	}
	dir, err := binaries.Ensure(t.Context(), os.Stdout, "etcd", "kube-apiserver", "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{UseExistingCluster: new(false), BinaryAssetsDirectory: dir}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cfg
}

func TestInstallAndUninstall(t *testing.T) {
	cfg := startAPIServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	// Twice: installing is idempotent.
	for range 2 {
		if err := Install(ctx, t.Output(), cfg, stage); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	teapot := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Teapot",
		"metadata": map[string]any{"name": "short-and-stout", "namespace": "default"},
	}}
	if err := c.Create(ctx, teapot); err != nil {
		t.Fatalf("an object of the installed kind is rejected: %v", err)
	}

	for range 2 {
		if err := Uninstall(ctx, t.Output(), cfg, stage); err != nil {
			t.Fatal(err)
		}
	}
	err = c.Get(ctx, client.ObjectKeyFromObject(teapot), teapot)
	if !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
		t.Errorf("the object is left: %v", err)
	}
}
