package elsewhere

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// slowUninstall is a go command that writes down the goals that the harness is called for, each when it has ended.
const slowUninstall = `#!/bin/sh
for word in "$@"; do
  case $word in
  uninstall | delete) sleep 0.3; echo "$word" >>"$RECORD" ;;
  install | up) echo "$word" >>"$RECORD" ;;
  esac
done
`

// With -j make would run all goals at once: what is installed would be removed again.
func TestGoalsRunInTheirOrder(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	record := filepath.Join(bin, "record")
	copyTo(t, dir, "Makefile", "shared/go.mod", "scripts/harness.mk", "scripts/stage.sh")
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(slowUninstall), 0o700); err != nil {
		t.Fatal(err)
	}
	check := func(dir, flags, goals, want string) {
		t.Helper()
		if err := os.WriteFile(record, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		variables := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "RECORD=" + record, "MAKEFLAGS=" + flags}
		output, err := run(t, dir, variables, append([]string{"make"}, strings.Fields(goals)...)...)
		got, readErr := os.ReadFile(record)
		if err := errors.Join(err, readErr); err != nil || strings.Join(strings.Fields(string(got)), " ") != want {
			t.Errorf("MAKEFLAGS=%s make %s in %s: %q, %v, want %q:\n%s", flags, goals, filepath.Base(dir), got, err, want, output)
		}
	}
	check(dir, "", "-j8 cluster-delete cluster", "delete up")
	for _, stage := range stages(t) {
		copyTo(t, dir, filepath.Join(stage, "Makefile"))
		check(filepath.Join(dir, stage), "", "-j8 uninstall install", "uninstall install")
		check(filepath.Join(dir, stage), "-j8", "uninstall install", "uninstall install")
		check(dir, "", "-j8 stage-"+stage[1:2]+" uninstall install", "uninstall install")
	}
}

// What is exported for another project must not deploy that project's operator, nor push the images to its registry.
func TestVariablesOfAnotherProjectDoNotCount(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "shared/go.mod", "scripts/harness.mk")
	others := map[string]string{"IMG": "other/image:v1", "REGISTRY": "other.example.com:5000", "OVERLAY": "others-overlay", "ARCH": "x86_64"}
	for name, value := range others {
		t.Setenv(name, value)
	}
	for _, stage := range stages(t) {
		copyTo(t, dir, filepath.Join(stage, "Makefile"))
		stage = filepath.Join(dir, stage)
		for _, goal := range []string{"deploy", "run", "undeploy", "build"} {
			words := strings.Join(recorded(t, stage, goal), "\n")
			for name, value := range others {
				if strings.Contains(words, value) {
					t.Errorf("make %s of %s takes %s from the environment:\n%s", goal, filepath.Base(stage), name, words)
				}
			}
		}
		words := recorded(t, stage, "deploy", "IMG=mine:v1", "REGISTRY=mine:5000", "OVERLAY=mine")
		for _, want := range []string{"controller=mine:v1", "mine:5000", "mine"} {
			if !slices.Contains(words, want) {
				t.Errorf("make deploy of %s does not take %s from its command line: %q", filepath.Base(stage), want, words)
			}
		}
	}
}

// pinned is a go command that writes down what it runs, and has controller-gen as a tool of a module.
const pinned = `#!/bin/sh
case "$*" in
*'tool -n controller-gen') echo "${0%/*}/controller-gen" ;;
*) echo "go $*" >>"$RECORD" ;;
esac
`

// go run with a version asks the module proxy even for what is in the cache; a tool of a module needs no network. A copy
// of a stage without the harness has no such module.
func TestGeneratorsNeedNoNetwork(t *testing.T) {
	for _, stage := range stages(t) {
		for _, withHarness := range []bool{true, false} {
			dir, bin := t.TempDir(), t.TempDir()
			record := filepath.Join(bin, "record")
			copyTo(t, dir, filepath.Join(stage, "Makefile"))
			if withHarness {
				copyTo(t, dir, "shared/go.mod", "scripts/harness.mk", "scripts/tools/go.mod")
			}
			err := errors.Join(os.WriteFile(filepath.Join(bin, "go"), []byte(pinned), 0o700),
				os.WriteFile(filepath.Join(bin, "controller-gen"), []byte("#!/bin/sh\necho controller-gen >>\"$RECORD\"\n"), 0o700),
				os.MkdirAll(filepath.Join(dir, stage, "hack"), 0o700),
				os.WriteFile(filepath.Join(dir, stage, "hack", "update-codegen.sh"), []byte("#!/bin/sh\n"), 0o700))
			if err != nil {
				t.Fatal(err)
			}
			variables := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "RECORD=" + record}
			output, err := run(t, filepath.Join(dir, stage), variables, "make", "generate", "manifests")
			words, readErr := os.ReadFile(record)
			if err := errors.Join(err, readErr); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			if asks := strings.Contains(string(words), "/controller-gen@v"); asks == withHarness || withHarness != strings.Contains(string(words), "controller-gen\n") {
				t.Errorf("make generate manifests of %s, with the harness: %t, runs\n%s", stage, withHarness, words)
			}
		}
	}
}
