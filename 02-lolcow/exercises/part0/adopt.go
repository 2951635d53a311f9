package part0

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"example.com/workbook/02-lolcow/exercises/part0/suite"
)

// scaffoldModule is the module that the solutions are written for.
const scaffoldModule = "example.com/my-lolcow"

// Adopt puts the solution of a step, with those of the steps before it, into a project. A file of the reader's that is
// replaced, or that the solution does not have beside its own, is kept in a folder of the project, which Adopt returns; it is
// empty if there was none.
func Adopt(ctx context.Context, dir, step string, now time.Time) (kept string, err error) {
	root, err := workbook()
	if err != nil {
		return "", err
	}
	if !slices.Contains(suite.Steps, step) {
		return "", fmt.Errorf("there is no step %s: steps are %v", step, suite.Steps)
	}
	module, err := modulePath(dir)
	if err != nil {
		return "", err
	}
	files, err := solutionFiles(filepath.Join(root, "02-lolcow", "exercises"), step)
	if err != nil {
		return "", err
	}
	for path, content := range files {
		files[path] = bytes.ReplaceAll(content, []byte(`"`+scaffoldModule+"/"), []byte(`"`+module+"/"))
	}
	kept = filepath.Join(dir, ".kept", now.Format("2006-01-02T15-04-05"))
	found, err := keep(dir, kept, files)
	if err != nil {
		return "", err
	}
	for path, content := range files {
		target := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, content, 0o644)); err != nil {
			return "", err
		}
	}
	if !found {
		kept = ""
	}
	return kept, nil
}

// solutionFiles are the files of a step's solution and of those before it, by their paths.
func solutionFiles(exercises, step string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, one := range suite.Steps[:slices.Index(suite.Steps, step)+1] {
		solution, err := solutionOf(exercises, one)
		if err != nil {
			return nil, err
		}
		err = fs.WalkDir(os.DirFS(solution), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path == "why.txt" {
				return err
			}
			files[path], err = os.ReadFile(filepath.Join(solution, path))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// keep moves into a folder what the solution replaces by something else, and the Go files beside the solution's that it does
// not have: they may define the same names. It reports whether there were any.
func keep(dir, kept string, files map[string][]byte) (bool, error) {
	found := false
	move := func(path string) error {
		found = true
		target := filepath.Join(kept, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.Rename(filepath.Join(dir, path), target)
	}
	folders := map[string]bool{}
	for path, content := range files {
		mine, err := os.ReadFile(filepath.Join(dir, path))
		if err == nil && !bytes.Equal(mine, content) {
			err = move(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
		if filepath.Ext(path) == ".go" {
			folders[filepath.Dir(path)] = true
		}
	}
	for folder := range folders {
		names, err := filepath.Glob(filepath.Join(dir, folder, "*.go"))
		if err != nil {
			return found, err
		}
		for _, name := range names {
			path := filepath.Join(folder, filepath.Base(name))
			if _, ours := files[path]; ours || slices.Contains(scaffolded, filepath.Base(name)) {
				continue
			}
			if err := move(path); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// scaffolded are files that kubebuilder makes and that stay as they are.
var scaffolded = []string{"groupversion_info.go", "zz_generated.deepcopy.go", "suite_test.go", "lolcow_controller_test.go"}
