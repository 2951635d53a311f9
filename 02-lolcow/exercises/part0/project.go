package part0

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"example.com/workbook/02-lolcow/exercises/part0/suite"
)

// project is what is checked: a folder with a Go module, and files that are laid over it.
type project struct {
	// dir is the folder of the module, and module its path.
	dir, module string
	// layers are the folders with its files: the first that has a file is where it is read. The last is dir.
	layers []string
}

// stage2 is the module of the stage, which has a constructor in place of exported fields.
const stage2 = "example.com/workbook/02-lolcow"

// projectIn returns the project that a folder stands for. A folder with a go.mod is one. Others are parts of an exercise: a
// start is what the steps before it make of a new project, and a solution or a mutant is laid over that.
func projectIn(ctx context.Context, dir, step string) (*project, error) {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		module, err := modulePath(dir)
		return &project{dir: dir, module: module, layers: []string{dir}}, err
	}
	exercises, err := exercisesDir(dir)
	if err != nil {
		return nil, err
	}
	layers, err := layersOf(exercises, dir, step)
	if err != nil {
		return nil, err
	}
	scaffold, err := scaffold(ctx, filepath.Dir(filepath.Dir(exercises)))
	if err != nil {
		return nil, err
	}
	module, err := modulePath(scaffold)
	return &project{dir: scaffold, module: module, layers: append(layers, scaffold)}, err
}

// layersOf are the folders that are laid over a new project, the first that has a file first.
func layersOf(exercises, dir, step string) ([]string, error) {
	var layers []string
	kind := filepath.Base(filepath.Dir(dir))
	if kind == "solutions" || kind == "mutants" {
		layers = append(layers, dir)
	}
	for _, one := range slices.Backward(suite.Steps[:slices.Index(suite.Steps, step)]) {
		solution, err := solutionOf(exercises, one)
		if err != nil {
			return nil, err
		}
		layers = append(layers, solution)
	}
	return layers, nil
}

func modulePath(dir string) (string, error) {
	file := filepath.Join(dir, "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	module := modfile.ModulePath(content)
	if module == "" {
		return "", fmt.Errorf("%s names no module", file)
	}
	return module, nil
}

// exercisesDir is the folder of the exercises that dir is in.
func exercisesDir(dir string) (string, error) {
	for one := dir; one != filepath.Dir(one); one = filepath.Dir(one) {
		if filepath.Base(one) == "exercises" {
			return one, nil
		}
	}
	return "", fmt.Errorf("%s is neither a Go module nor a part of an exercise", dir)
}

// solutionOf is the folder with the solution of a step.
func solutionOf(exercises, step string) (string, error) {
	found, err := filepath.Glob(filepath.Join(exercises, step+"-*", "solutions", "_reference"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%d solutions of step %s in %s; expected 1 (%w)", len(found), step, exercises, err)
	}
	return found[0], nil
}

// scaffold is a new project, made once for all starts, solutions and mutants. The name of its folder has what it depends on.
func scaffold(ctx context.Context, root string) (string, error) {
	key, err := scaffoldKey(root)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "_artifacts", "part0", key, "my-lolcow")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	// Two checks may make it at once: the first that is done gives it the name.
	temp, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	made := filepath.Join(temp, "my-lolcow")
	cmd := exec.CommandContext(ctx, filepath.Join(root, "scripts", "my-lolcow.sh"), "new", made)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("making a new project: %w\n%s", err, output)
	}
	if err := os.Rename(made, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, statErr := os.Stat(dir); statErr != nil {
			return "", err
		}
	}
	return dir, nil
}

// scaffoldKey has the versions of what makes a project.
func scaffoldKey(root string) (string, error) {
	var parts []string
	for dir, module := range map[string]string{
		"scripts/tools/kubebuilder": "sigs.k8s.io/kubebuilder/v4",
		"shared":                    "sigs.k8s.io/controller-runtime",
		"scripts/tools":             "sigs.k8s.io/controller-tools",
	} {
		file, err := readModule(filepath.Join(root, dir))
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(file.Require, func(r *modfile.Require) bool { return r.Mod.Path == module })
		if i < 0 {
			return "", fmt.Errorf("%s/go.mod does not require %s", dir, module)
		}
		parts = append(parts, filepath.Base(module)+file.Require[i].Mod.Version)
	}
	slices.Sort(parts)
	return strings.Join(parts, "-"), nil
}
