package docstest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lab is a folder in which commands run that must not see this repository's workspace.
type lab struct {
	t   *testing.T
	dir string
}

func (l lab) try(dir string, words ...string) (string, error) {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), words[0], words[1:]...)
	cmd.Dir = filepath.Join(l.dir, dir)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func (l lab) run(dir string, words ...string) string {
	l.t.Helper()
	output, err := l.try(dir, words...)
	if err != nil {
		skipWithoutNetwork(l.t, output)
		l.t.Fatalf("%v: %v\n%s", words, err, output)
	}
	return output
}

func (l lab) has(file, text string) {
	l.t.Helper()
	content, err := os.ReadFile(filepath.Join(l.dir, file))
	if err != nil || !strings.Contains(string(content), text) {
		l.t.Errorf("%s: there is no %q in it (%v)", file, text, err)
	}
}

// skipWithoutNetwork skips a test whose command asks the module proxy, as go run with a version in a Makefile does.
func skipWithoutNetwork(t *testing.T, output string) {
	t.Helper()
	if regexp.MustCompile(`GOPROXY=off|dial tcp|no such host|i/o timeout|connection refused`).MatchString(output) {
		t.Skipf("this needs the module proxy:\n%s", output)
	}
}

// kubebuilder builds the CLI that the workbook pins, and returns its path.
func kubebuilder(t *testing.T, root string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(root, "scripts", "tools", "kubebuilder"), "tool", "-n", "kubebuilder")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	path, err := cmd.Output()
	if err != nil {
		skipWithoutNetwork(t, stderr.String())
		t.Fatalf("building the kubebuilder CLI: %v: %s", err, stderr.String())
	}
	return strings.TrimSpace(string(path))
}

// Q7: can `create api` be run twice? Yes, for another kind each time. Here it adds a third to a copy of stage 3, whose
// second the seed's author wrote by hand, and the copy builds.
func TestSeedQuestion_CreateAPIRunsAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds the kubebuilder CLI: a minute and more, the first time")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	l := lab{t: t, dir: t.TempDir()}
	cli := kubebuilder(t, root)
	const stage = "flux-operator"
	l.run(".", filepath.Join(root, "scripts", "copy-tree.sh"), filepath.Join(root, "03-flux"), filepath.Join(l.dir, stage))

	create := []string{cli, "create", "api", "--version=v1alpha1", "--kind=FluxQueue", "--resource", "--controller"}
	l.run(stage, create...)
	l.has(stage+"/PROJECT", "kind: FluxSetup\n")
	l.has(stage+"/PROJECT", "kind: FluxQueue\n")
	l.has(stage+"/api/v1alpha1/fluxqueue_types.go", "type FluxQueueSpec struct")
	l.has(stage+"/api/v1alpha1/zz_generated.deepcopy.go", "func (in *FluxQueue) DeepCopyObject()")
	l.has(stage+"/internal/controller/fluxqueue_controller.go", "func (r *FluxQueueReconciler) Reconcile(")
	l.has(stage+"/cmd/main.go", "controller.FluxQueueReconciler{")
	l.has(stage+"/cmd/main.go", "controller.NewFluxSetupReconciler(")
	l.has(stage+"/config/crd/kustomization.yaml", "bases/flux-framework.org_fluxqueues.yaml")
	l.run(stage, "go", "build", "./...")

	// For the same kind it fails, unless it is asked to overwrite.
	output, err := l.try(stage, create...)
	if err == nil || !strings.Contains(output, "API resource already exists") {
		t.Errorf("the same kind again: %v\n%s", err, output)
	}
}
