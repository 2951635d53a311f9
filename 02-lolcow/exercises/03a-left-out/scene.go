package leftout

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"example.com/workbook/shared/exercise/check"
)

// The values of GOWORK: the one lets Go look for a go.work, and the other does not.
const (
	inWorkspace = ""
	alone       = "off"
)

const (
	harness = "example.com/pots/shared"
	inACopy = "in a copy of kettle"
)

// coffee is what brew.go says in a kettle that is wrong.
const coffee = `package brew

func Tea(int) string { return "coffee" }
`

// copied is a copy of the reader's folder, or of one in it, far away from this repository.
type copied struct {
	b   *check.B
	dir string
}

func newCopy(b *check.B, dir, folder string) *copied {
	temp, err := os.MkdirTemp("", "left-out-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(temp) })
	c := &copied{b, filepath.Join(temp, "pots")}
	if err := os.CopyFS(c.dir, os.DirFS(filepath.Join(dir, folder))); err != nil {
		b.Fatalf("copying your folder: %v", err)
	}
	return c
}

// run runs go in a folder of the copy, and returns what it prints.
func (c *copied) run(dir, workspace string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.b.Context(), "go", args...)
	cmd.Dir = filepath.Join(c.dir, dir)
	cmd.Env = append(os.Environ(), "GOWORK="+workspace, "GOFLAGS=", "CGO_ENABLED="+cmp.Or(os.Getenv("CGO_ENABLED"), "0"))
	output, err := cmd.CombinedOutput()
	c.b.Event("in %s, GOWORK=%s go %s", filepath.Join("pots", dir), workspace, strings.Join(args, " "))
	for line := range strings.Lines(string(output)) {
		c.b.Event("  %s", strings.ReplaceAll(strings.TrimRight(line, "\n"), filepath.Dir(c.dir), ""))
	}
	return strings.TrimSpace(string(output)), err
}

// must runs go, which has to succeed.
func (c *copied) must(workspace, where string, args ...string) {
	if _, err := c.run(".", workspace, args...); err != nil {
		c.b.Fatalf("%s, go %s fails", where, strings.Join(args, " "))
	}
}

// passes builds and tests all modules, and asserts that TestTea passes in one of them, and tests kettle with what is in shared.
func (c *copied) passes(workspace string) {
	where := map[string]string{inWorkspace: "in the workspace", alone: "without the workspace"}[workspace]
	found := false
	for _, module := range c.modules() {
		output, err := c.run(module, workspace, "test", "-v", "-run=^TestTea$", "./...")
		if err != nil {
			c.b.Fatalf("%s, go test ./... fails in the module %s", where, module)
		}
		if !strings.Contains(output, "--- PASS: TestTea") {
			continue
		}
		found = true
		deps, _ := c.run(module, workspace, "list", "-test", "-deps", "./...")
		for _, tested := range []string{"example.com/pots/kettle/brew", harness + "/expect"} {
			if !contains(deps, tested) {
				c.b.Fatalf("TestTea does not use %s any more", tested)
			}
		}
	}
	if !found {
		c.b.Fatalf("%s, no module has TestTea", where)
	}
}

func (c *copied) makeCoffee() {
	c.b.Event("kettle/brew/brew.go is replaced: Tea returns coffee")
	if err := os.WriteFile(filepath.Join(c.dir, "kettle", "brew", "brew.go"), []byte(coffee), 0o600); err != nil {
		c.b.Fatalf("writing kettle/brew/brew.go: %v", errors.Unwrap(err))
	}
}

// fails asserts that TestTea fails, in the workspace.
func (c *copied) fails() {
	for _, module := range c.modules() {
		if output, _ := c.run(module, inWorkspace, "test", "-run=^TestTea$", "./..."); strings.Contains(output, "--- FAIL: TestTea") {
			return
		}
	}
	c.b.Fatalf("Tea returns coffee, and TestTea does not say so")
}

// modules are the folders with a go.mod.
func (c *copied) modules() []string {
	var modules []string
	err := filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "vendor":
			return fs.SkipDir
		case entry.Name() == "go.mod":
			rel, err := filepath.Rel(c.dir, filepath.Dir(path))
			modules = append(modules, rel)
			return err
		}
		return nil
	})
	if err != nil {
		c.b.Fatalf("reading your folder: %v", err)
	}
	return modules
}

// contains looks for a line.
func contains(output, line string) bool { return slices.Contains(strings.Split(output, "\n"), line) }
