package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The copy of each stage, with the harness: no old name is left in it, its recipe generates all CRDs, and what it imports of
// itself is there. What is generated anew, make starter itself looks at.
func TestCopies(t *testing.T) {
	t.Parallel()
	_ = os.Getenv("REPOSITORY_SUM") // so that Go's cache of results sees a change of these files
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range stageNumbers(repo) {
		o := optionsFor(repo)
		o.Stage, o.Dest = number, filepath.Join(t.TempDir(), "my-op")
		s, err := findStage(t.Context(), repo, number)
		if err != nil {
			t.Fatal(err)
		}
		keep, err := compile(s.hints.Keep)
		if err != nil {
			t.Fatal(err)
		}
		r := newRenamer(s.names(o), keep)
		origins, err := plan(t.Context(), repo, s)
		if err != nil {
			t.Fatal(err)
		}
		from, err := write(repo, o.Dest, o, s, r, origins)
		if err != nil {
			t.Fatal(err)
		}
		expectAllCRDs(t, o.Dest)
		expectImports(t, o.Dest, o.Module)
		if err := os.RemoveAll(filepath.Join(o.Dest, "internal", "generated")); err != nil {
			t.Fatal(err)
		}
		left, err := leftovers(o.Dest, r, from)
		if err != nil || len(left) > 0 {
			t.Errorf("STAGE=%s: %v, left:\n%s", number, err, strings.Join(left, "\n"))
		}
	}
}

// A kind that is added later has its package in api/, too.
func expectAllCRDs(t *testing.T, dir string) {
	t.Helper()
	recipe, err := exec.CommandContext(t.Context(), "make", "-C", dir, "-n", "manifests").CombinedOutput()
	if want := " paths=./api/... output:crd:dir=config/crd/bases"; err != nil || !strings.Contains(string(recipe), want) {
		t.Errorf("%v: make manifests runs\n%s\nwant %s", err, recipe, want)
	}
}

// What a copy imports of itself is in it.
func expectImports(t *testing.T, dir, module string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			folder, own := strings.CutPrefix(name, module+"/")
			if !own {
				continue
			}
			if found, _ := filepath.Glob(filepath.Join(dir, folder, "*.go")); len(found) == 0 {
				t.Errorf("%s imports %s, which the copy has not", file, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
