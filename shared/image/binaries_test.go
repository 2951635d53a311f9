package image

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// compilations makes go write down what it compiles from now on in this test, and returns what it has compiled.
func compilations(t *testing.T) func() string {
	t.Helper()
	dir := t.TempDir()
	record, script := filepath.Join(dir, "record"), filepath.Join(dir, "toolexec")
	program := "#!/bin/sh\ncase $1 in */compile) [ \"$2\" = -V=full ] || echo \"$*\" >>'" + record + "' ;; esac\nexec \"$@\"\n"
	if err := os.WriteFile(script, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -toolexec="+script)
	return func() string {
		compiled, err := os.ReadFile(record)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(compiled)
	}
}

// What make's test, run and e2e have compiled, without cgo and with Go's own flags, serves images too.
func TestBinaryCompilesNothingAgain(t *testing.T) {
	dir := newStage(t)
	for name, content := range map[string]string{
		"tea/tea.go":  "package tea\n\nconst Kind = \"green\"\n",
		"cmd/main.go": "package main\n\nimport \"example.com/teapot/tea\"\n\nfunc main() { println(tea.Kind) }\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	compiled := compilations(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, "./...")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	before := compiled()
	if !strings.Contains(before, "tea.go") {
		t.Fatalf("the stage was compiled, and this is on record:\n%s", before)
	}
	if _, err := Binary(t.Context(), dir, "manager", runtime.GOOS, runtime.GOARCH); err != nil {
		t.Fatal(err)
	}
	// A program's own package holds its flags, so it is another.
	if again := strings.TrimPrefix(compiled(), before); strings.Contains(again, "tea.go") {
		t.Errorf("compiled again:\n%s", again)
	}
}
