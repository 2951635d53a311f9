package elsewhere

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lister is a go command: it lists a package of each module, none of the module empty, and cannot read that of broken.
const lister = `#!/bin/sh
[ "$1" != -C ] || shift 2
case "$1 ${PWD##*/}" in
tool*) echo "${0%/*}/linter" ;;
"list broken") echo 'go: errors parsing go.mod' >&2; exit 1 ;;
"list empty") ;;
list*) echo example.com/x ;;
esac
`

// A module that go cannot read is not one without packages: the linter says what is wrong with it.
func TestLintLeavesNoModuleOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a copy")
	copyTo(t, dir, "scripts/lint.sh")
	bin := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(bin, "go"), []byte(lister), 0o700),
		os.WriteFile(filepath.Join(bin, "linter"), []byte("#!/bin/sh\n[ ${PWD##*/} != broken ]\n"), 0o700))
	lint := func() (string, error) {
		return run(t, dir, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, "scripts/lint.sh", ".")
	}
	module := func(name string) error {
		return errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.WriteFile(filepath.Join(dir, name, "go.mod"), nil, 0o600))
	}
	if err := errors.Join(err, module("fine"), module("empty"), module("vendor"), module("_artifacts"), module("vendor/x"), module("_artifacts/x")); err != nil {
		t.Fatal(err)
	}
	if output, err := lint(); err != nil || !strings.Contains(output, "golangci-lint ./fine\n") || strings.Contains(output, "empty") || strings.Contains(output, "/x") {
		t.Errorf("got %v, want fine to be linted:\n%s", err, output)
	}
	if err := module("broken"); err != nil {
		t.Fatal(err)
	}
	if output, err := lint(); err == nil || !strings.Contains(output, "golangci-lint ./broken\n") {
		t.Errorf("got %v, want broken to be linted, and to fail:\n%s", err, output)
	}
}
