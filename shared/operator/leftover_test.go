package operator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What names a cluster that is gone would grow for ever, and holds tokens.
func TestNothingIsLeftOfACluster(t *testing.T) {
	repo, cache := t.TempDir(), t.TempDir()
	t.Setenv("HARNESS_CACHE", cache)
	gone := []string{
		filepath.Join(cache, "operators", "kind-test-05-teapot", "1.json"), filepath.Join(repo, ".kube", "operator-05-teapot.kind-test"),
		filepath.Join(repo, ".kube", "operator-05-teapot.kind-test.2"), filepath.Join(repo, ".kube", "operator-05-teapot"),
	}
	stays := []string{
		filepath.Join(cache, "operators", "kind-test-2-05-teapot", "1.json"), filepath.Join(cache, "operators", "embedded-test-05-teapot", "1.json"),
		filepath.Join(repo, ".kube", "operator-05-teapot.embedded-test"), filepath.Join(repo, ".kube", "operator-05-teapot.kind-test-2"), filepath.Join(repo, ".kube", "config"),
	}
	for _, path := range append([]string{
		filepath.Join(repo, "shared/config/harness.env"), filepath.Join(repo, "05-teapot/config/crd/kustomization.yaml"),
	}, append(append([]string{}, gone[:3]...), stays...)...) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("operator-05-teapot.kind-test", gone[3]); err != nil {
		t.Fatal(err)
	}
	t.Chdir(repo)
	for range 2 {
		if err := Forget(t.Context(), t.Output(), "kind-test"); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range gone {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	for _, path := range stays {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s is another cluster's: %v", path, err)
		}
	}
}
