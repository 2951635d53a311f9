package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kubebuilderModule is a module of its own for the CLI: go run MODULE@VERSION would do, and asks the module proxy for
// all versions that there are, which not every proxy tells.
const kubebuilderModule = `module tools

go 1.26.0

require sigs.k8s.io/kubebuilder/v4 v4.10.1

tool sigs.k8s.io/kubebuilder/v4
`

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

// change replaces a text in a file.
func (l lab) change(file, from, to string) {
	l.t.Helper()
	l.has(file, from)
	content, err := os.ReadFile(filepath.Join(l.dir, file))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, file), []byte(strings.ReplaceAll(string(content), from, to)), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// Q7: can `create api` be run twice? Yes, for another kind each time. Here it adds a third to a copy of stage 3, whose
// second the seed's author wrote by hand, and the copy builds, once the new kind is named in its scheme.
func TestSeedQuestion_CreateAPIRunsAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds the kubebuilder CLI: a minute and more, the first time")
	}
	l := lab{t: t, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(l.dir, "go.mod"), []byte(kubebuilderModule), 0o644); err != nil {
		t.Fatal(err)
	}
	l.run(".", "go", "build", "-o", "kubebuilder", "sigs.k8s.io/kubebuilder/v4")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const stage = "flux-operator"
	l.run(".", filepath.Join(root, "scripts", "copy-tree.sh"), filepath.Join(root, "03-flux"), filepath.Join(l.dir, stage))

	create := []string{"../kubebuilder", "create", "api", "--version=v1alpha1", "--kind=FluxQueue", "--resource", "--controller"}
	l.run(stage, create...)
	l.has(stage+"/PROJECT", "kind: FluxSetup\n")
	l.has(stage+"/PROJECT", "kind: FluxQueue\n")
	l.has(stage+"/api/v1alpha1/fluxqueue_types.go", "type FluxQueueSpec struct")
	l.has(stage+"/api/v1alpha1/zz_generated.deepcopy.go", "func (in *FluxQueue) DeepCopyObject()")
	l.has(stage+"/internal/controller/fluxqueue_controller.go", "func (r *FluxQueueReconciler) Reconcile(")
	l.has(stage+"/cmd/main.go", "controller.FluxQueueReconciler{")
	l.has(stage+"/cmd/main.go", "controller.NewFluxSetupReconciler(")
	l.has(stage+"/config/crd/kustomization.yaml", "bases/flux-framework.org_fluxqueues.yaml")
	// It writes a line for the older scheme.Builder of controller-runtime: see groupversion_info.go of the stage.
	l.change(stage+"/api/v1alpha1/fluxqueue_types.go", "SchemeBuilder.Register(&FluxQueue{}, &FluxQueueList{})", "")
	l.change(stage+"/api/v1alpha1/groupversion_info.go", "&FluxSetupList{}", "&FluxSetupList{}, &FluxQueue{}, &FluxQueueList{}")
	l.run(stage, "go", "build", "./...")

	// Of the same kind it is refused, unless it is told to overwrite.
	output, err := l.try(stage, create...)
	if err == nil || !strings.Contains(output, "API resource already exists") {
		t.Errorf("the same kind again: %v\n%s", err, output)
	}
}
