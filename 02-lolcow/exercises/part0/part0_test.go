package part0

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, content := range files {
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestAdoptKeepsTheReadersFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module example.org/cows\n\ngo 1.26.0\n",
		"internal/controller/lolcow_controller.go": "package controller // mine\n",
		"internal/controller/desired.go":           "package controller // also mine\n",
		"internal/controller/suite_test.go":        "package controller // the scaffold's\n",
		"cmd/main.go":                              "package main\n",
	})
	kept, err := Adopt(t.Context(), dir, "11b", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, kept, "internal/controller/lolcow_controller.go"); got != "package controller // mine\n" {
		t.Errorf("kept: %q", got)
	}
	if got := read(t, kept, "internal/controller/desired.go"); got != "package controller // also mine\n" {
		t.Errorf("kept: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "internal/controller/desired.go")); !os.IsNotExist(err) {
		t.Errorf("a file that may define the same names is still there: %v", err)
	}
	if got := read(t, dir, "internal/controller/lolcow_controller.go"); !strings.Contains(got, `"example.org/cows/api/v1alpha1"`) {
		t.Errorf("the solution imports another module:\n%s", got)
	}
	for _, same := range []string{"internal/controller/suite_test.go", "cmd/main.go", "api/v1alpha1/lolcow_types.go"} {
		read(t, dir, same)
	}
	kept, err = Adopt(t.Context(), dir, "11b", time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC))
	if err != nil || kept != "" {
		t.Errorf("the second time something was kept in %q (%v)", kept, err)
	}
}

func TestAdoptKnowsTheSteps(t *testing.T) {
	if _, err := Adopt(t.Context(), t.TempDir(), "09a", time.Time{}); err == nil || !strings.Contains(err.Error(), "no step 09a") {
		t.Errorf("the error is %v", err)
	}
}

// The program has the higher version of the two, and what only the project requires.
func TestRequirements(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module example.org/cows\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/client-go v0.36.0\n\texample.org/mine v1.2.3\n\tsigs.k8s.io/yaml v1.99.0\n)\n",
		"go.sum": "example.org/mine v1.2.3 h1:x=\n",
	})
	file, err := requirements(temp, &project{dir: dir, module: "example.org/cows"})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(file, []byte(read(t, file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, one := range parsed.Require {
		versions[one.Mod.Path] = one.Mod.Version
	}
	if versions["example.org/mine"] != "v1.2.3" || versions["sigs.k8s.io/yaml"] != "v1.99.0" || versions["k8s.io/client-go"] == "v0.36.0" {
		t.Errorf("the requirements are %v", versions)
	}
	replaced := map[string]string{}
	for _, one := range parsed.Replace {
		replaced[one.Old.Path] = one.New.Path
	}
	for _, module := range []string{"shared", "02-lolcow", "02-lolcow/exercises"} {
		path := replaced["example.com/workbook/"+module]
		if content, err := os.ReadFile(filepath.Join(path, "go.mod")); err != nil || !filepath.IsAbs(path) ||
			!strings.HasPrefix(string(content), "module example.com/workbook/"+module+"\n") {
			t.Errorf("the module %s is replaced by %q: %v", module, path, err)
		}
	}
	if sums := read(t, temp, "part0.sum"); !strings.Contains(sums, "example.org/mine") || !strings.Contains(sums, "k8s.io/client-go") {
		t.Error("a sum is missing")
	}
}

func TestProjectOfASolution(t *testing.T) {
	root, err := workbook()
	if err != nil {
		t.Fatal(err)
	}
	exercises := filepath.Join(root, "02-lolcow", "exercises")
	dir := filepath.Join(exercises, "11c-service", "solutions", "_reference")
	layers, err := layersOf(exercises, dir, "11c")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{dir, "11b-first-child", "11a-empty-folder"}
	for i, layer := range layers {
		if !strings.Contains(layer, want[i]) {
			t.Errorf("layer %d is %s", i, layer)
		}
	}
	if len(layers) != len(want) {
		t.Errorf("%d layers", len(layers))
	}
}

func TestReadable(t *testing.T) {
	p := &project{layers: []string{"/somewhere/cows"}}
	output := "# example.org/cows/internal/controller\n/somewhere/cows/internal/controller/a.go:3:1: undefined: x\n/tmp/part0-1/main.go:5:2: unknown field Client\n"
	want := "internal/controller/a.go:3:1: undefined: x\nthe check uses the project: unknown field Client"
	if got := readable(p, nil, []byte(output)); got != want {
		t.Errorf("got %q", got)
	}
}
