package v1alpha1

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Q10: why does an import of an API package bear an alias such as mydomainv1alpha1? Because a package of an API is named
// after its version only. Two groups have a v1 each, and one file has room for one v1. Two versions of one group have
// two names, and need no alias; one package alone needs none either.
func TestSeedQuestion_AliasesAreForTwoGroupsOfOneVersion(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		imports, use string
		rejected     string // what the compiler says; empty if it has nothing against it
	}{
		"one package": {
			imports: `"k8s.io/api/apps/v1"`,
			use:     `v1.Deployment`,
		},
		"two versions of one group": {
			imports: `"k8s.io/api/apps/v1"; "k8s.io/api/apps/v1beta1"`,
			use:     `struct{ a v1.Deployment; b v1beta1.Deployment }`,
		},
		"two groups of one version": {
			imports:  `"k8s.io/api/apps/v1"; "k8s.io/api/core/v1"`,
			use:      `struct{ a v1.Deployment; b v1.Pod }`,
			rejected: "v1 redeclared in this block",
		},
		"two groups of one version, with aliases": {
			imports: `appsv1 "k8s.io/api/apps/v1"; corev1 "k8s.io/api/core/v1"`,
			use:     `struct{ a appsv1.Deployment; b corev1.Pod }`,
		},
		"two groups of one version, one of them with an alias": {
			imports: `"k8s.io/api/apps/v1"; corev1 "k8s.io/api/core/v1"`,
			use:     `struct{ a v1.Deployment; b corev1.Pod }`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, err := compile(t, "package probe\n\nimport ("+test.imports+")\n\nvar _ "+test.use+"\n")
			switch {
			case test.rejected == "" && err != nil:
				t.Errorf("the compiler rejects it: %v\n%s", err, said)
			case test.rejected != "" && (err == nil || !strings.Contains(said, test.rejected)):
				t.Errorf("want %q, got %v\n%s", test.rejected, err, said)
			}
		})
	}
}

// compile has the compiler look at a file as if it were a package of this module, and returns what it says.
func compile(t *testing.T, source string) (string, error) {
	t.Helper()
	stage, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "probe.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(stage, "probe", "probe.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{file: []byte(source), overlay: replace} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./probe")
	cmd.Dir = stage
	cmd.Env = append(os.Environ(), "GOWORK=off")
	output, err := cmd.CombinedOutput()
	return string(output), err
}
