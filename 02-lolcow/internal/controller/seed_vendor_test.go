package controller

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Q11: is `go mod vendor` needed? No. Go reads the libraries from its module cache, at the versions that go.mod names.
func TestSeedQuestion_VendorIsNotNeeded(t *testing.T) {
	t.Parallel()
	stage := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(stage, "vendor")); !os.IsNotExist(err) {
		t.Fatalf("the stage has a folder vendor: %v", err)
	}
	goCommand := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = stage
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
		output, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %v: %v", args, err)
		}
		return strings.TrimSpace(string(output))
	}
	moduleCache := goCommand("env", "GOMODCACHE")
	libraries := 0
	// Every package that the operator is built of, and the folder that it comes from.
	for line := range strings.Lines(goCommand("list", "-deps", "-f", "{{if .Module}}{{if not .Module.Main}}{{.Dir}}{{end}}{{end}}", "./cmd")) {
		dir := strings.TrimSpace(line)
		if dir == "" {
			continue
		}
		libraries++
		if !strings.HasPrefix(dir, moduleCache) {
			t.Errorf("%s is not in the module cache", dir)
		}
	}
	if libraries < 100 {
		t.Errorf("%d packages of libraries: that cannot be all", libraries)
	}
	t.Logf("%d packages of libraries, all from the module cache", libraries)
}
