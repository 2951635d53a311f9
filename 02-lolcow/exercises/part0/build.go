package part0

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// programDir is the folder of the program in the project. It is there for the compiler only.
const programDir = "zz-part0"

// ourModule is the module that this package belongs to, and sharedModule the one with the form of exercises.
const (
	ourModule    = "example.com/workbook/02-lolcow/exercises"
	sharedModule = "example.com/workbook/shared"
)

// program is the main function with the suite. It is made anew for each build.
var program = template.Must(template.New("").Parse(`// Code generated for one run of a check. DO NOT EDIT.

package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"{{.Ours}}/part0/suite"
	"{{.Module}}/api/v1alpha1"
	"{{.Module}}/internal/controller"
)

func main() {
	suite.Main(suite.Project{
		AddToScheme: v1alpha1.AddToScheme,
		New: func(c client.Client, scheme *runtime.Scheme, recorder events.EventRecorder) suite.Operator {
			reconciler := &controller.LolcowReconciler{Client: c, Scheme: scheme}
			suite.SetRecorder(reconciler, recorder)
			return reconciler
		},
	})
}
`))

// adapter is the same for stage 2, whose reconciler has a constructor, and its setup more arguments.
var adapter = template.Must(template.New("").Parse(`// Code generated for one run of a check. DO NOT EDIT.

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	"{{.Ours}}/part0/suite"
	"{{.Module}}/api/v1alpha1"
	"{{.Module}}/internal/controller"
)

type operator struct{ *controller.LolcowReconciler }

func (o operator) SetupWithManager(mgr ctrl.Manager) error {
	return o.LolcowReconciler.SetupWithManager(context.Background(), mgr, runtimecontroller.Options{})
}

func main() {
	suite.Main(suite.Project{
		AddToScheme: v1alpha1.AddToScheme,
		New: func(c client.Client, _ *runtime.Scheme, recorder events.EventRecorder) suite.Operator {
			return operator{controller.NewLolcowReconciler(c, recorder, clock.RealClock{}, "lolcow:latest")}
		},
		Cache: controller.CacheOptions(),
	})
}
`))

// build compiles the program into temp. What the compiler says about the project is in the error.
func build(ctx context.Context, temp string, p *project) (string, error) {
	replaced, err := overlay(temp, p)
	if err != nil {
		return "", err
	}
	module, err := requirements(temp, p)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(temp, "check")
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", replaced, "-modfile", module, "-mod=mod", "-ldflags=-s -w",
		"-buildvcs=false", "-o", binary, "./"+programDir)
	cmd.Dir = p.dir
	// As all of the workbook is built: its libraries are compiled.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED="+cmp.Or(os.Getenv("CGO_ENABLED"), "0"))
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s", readable(p, err, output))
	}
	return binary, nil
}

// overlay writes the file by which the compiler finds the program, and the layers of the project, in its folder.
func overlay(temp string, p *project) (string, error) {
	code := program
	if p.module == stage2 {
		code = adapter
	}
	var source bytes.Buffer
	if err := code.Execute(&source, map[string]string{"Module": p.module, "Ours": ourModule}); err != nil {
		return "", err
	}
	main := filepath.Join(temp, "main.go")
	if err := os.WriteFile(main, source.Bytes(), 0o600); err != nil {
		return "", err
	}
	replace := map[string]string{filepath.Join(p.dir, programDir, "main.go"): main}
	for _, layer := range p.layers {
		if layer == p.dir {
			continue
		}
		err := fs.WalkDir(os.DirFS(layer), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			if target := filepath.Join(p.dir, path); replace[target] == "" {
				replace[target] = filepath.Join(layer, path)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(temp, "overlay.json")
	return file, os.WriteFile(file, content, 0o600)
}

// requirements writes a go.mod that requires what the project does, and what the suite does, at the higher version of the
// two, and a go.sum that has the sums of both.
func requirements(temp string, p *project) (string, error) {
	root, err := workbook()
	if err != nil {
		return "", err
	}
	exercises := filepath.Join(root, "02-lolcow", "exercises")
	merged, err := readModule(p.dir)
	if err != nil {
		return "", err
	}
	ours, err := readModule(exercises)
	if err != nil {
		return "", err
	}
	versions := map[string]string{}
	for _, one := range merged.Require {
		versions[one.Mod.Path] = one.Mod.Version
	}
	for _, one := range ours.Require {
		if one.Mod.Path == stage2 {
			continue // the project may be stage 2 itself
		}
		if semver.Compare(one.Mod.Version, versions[one.Mod.Path]) > 0 {
			if err := merged.AddRequire(one.Mod.Path, one.Mod.Version); err != nil {
				return "", err
			}
		}
	}
	err = errors.Join(
		merged.AddRequire(ourModule, "v0.0.0"), merged.AddReplace(ourModule, "", exercises, ""),
		merged.AddReplace(sharedModule, "", filepath.Join(root, "shared"), ""),
		merged.AddReplace(stage2, "", filepath.Join(root, "02-lolcow"), ""))
	if err != nil {
		return "", err
	}
	content, err := merged.Format()
	if err != nil {
		return "", err
	}
	var sums []byte
	for _, dir := range []string{p.dir, exercises} {
		sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		if err != nil {
			return "", err
		}
		sums = append(sums, sum...)
	}
	file := filepath.Join(temp, "part0.mod")
	return file, errors.Join(os.WriteFile(file, content, 0o600), os.WriteFile(filepath.Join(temp, "part0.sum"), sums, 0o600))
}

func readModule(dir string) (*modfile.File, error) {
	file := filepath.Join(dir, "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(file, content, nil)
}

// workbook is the folder of the workbook: this file was compiled in it.
func workbook() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.work")); !ok || err != nil {
		return "", fmt.Errorf("the workbook that this program was compiled in is gone: %s (%w)", root, err)
	}
	return root, nil
}

var programLine = regexp.MustCompile(`^\S*main\.go:\d+:\d+: `)

// readable leaves of the compiler's output what the reader needs, with the names of files as the reader knows them.
func readable(p *project, err error, output []byte) string {
	var lines []string
	for line := range strings.Lines(string(output)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "# ") {
			continue
		}
		for _, layer := range p.layers {
			line = strings.ReplaceAll(line, layer+string(filepath.Separator), "")
		}
		line = programLine.ReplaceAllString(line, "the check uses the project: ")
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "go build: " + err.Error()
	}
	if strings.Contains(lines[0], "zz_generated") {
		lines = append(lines, "A type has changed since that file was generated: run scripts/my-lolcow.sh generate")
	}
	return strings.Join(lines, "\n")
}
