// Package usedfield is exercise 25a: a new field of a copy of stage 2, from the spec to the Pods and to the status.
//
//	copy.go   the copy
//	check.go  what is asked of its files
//	scene.go  what is asked of its operator
package usedfield

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/workbook/02-lolcow/exercises/internal/program"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// project is the copy, with what a check has made of it.
type project struct {
	dir      string
	program  *program.Program
	operator *program.Process
	// ends are called at the end, the last one first.
	ends []func()
}

func (p *project) end() {
	for _, end := range slices.Backward(p.ends) {
		end()
	}
}

// Check looks at the files of the copy, and runs its operator.
func Check(t *check.T, work check.Work[check.Files]) {
	// Else the client of the check prints, among what the reader's code prints, that no logger is set.
	log.SetLogger(logr.Discard())
	p := &project{}
	defer p.end()
	ok := t.Behaviour("the copy compiles", func(b *check.B) {
		p.dir = p.open(b, work.Dir)
		p.program = program.Build(b, p.dir, "./cmd")
		p.ends = append(p.ends, p.program.Remove)
	})
	if !ok {
		return
	}
	t.Behaviour("what is generated is up to date", p.generated)
	t.Behaviour("no name of the stage is left", p.names)
	ok = t.Behaviour("the API server stores spec.flavour, of up to 20 characters", func(b *check.B) {
		manifest, err := os.ReadFile(filepath.Join(p.dir, "config", "crd", "bases", "teapots.dev_teapots.yaml"))
		if err != nil {
			b.Fatalf("%v", err)
		}
		kube.InstallCRD(b, manifest)
		longest := strings.Repeat("é", 20)
		if stored := p.create(b, longest).field("spec"); stored != longest {
			b.Fatalf("a Teapot was created with a flavour, and the API server has stored none: the CRD lacks the field, which is pruned")
		}
		if _, err := p.try(b, longest+"é"); !apierrors.IsInvalid(err) {
			b.Fatalf("a flavour of 21 characters is not rejected: %v", err)
		}
	})
	if ok {
		p.behave(t)
	}
}

// generated fails if a file is not what make generate manifests writes.
func (p *project) generated(b *check.B) {
	temp, err := os.MkdirTemp("", "generated-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(temp) })
	generator := program.Run(b, p.dir, nil, "go", "-C", "hack/harness/scripts/tools", "tool", "-n", "controller-gen")
	program.Run(b, p.dir, nil, generator, "object:headerFile=hack/boilerplate.go.txt", "crd", "paths=./api/...",
		"output:object:dir="+temp, "output:crd:dir="+temp)
	files, err := os.ReadDir(temp)
	if err != nil || len(files) == 0 {
		b.Fatalf("controller-gen writes nothing: %v", err)
	}
	for _, file := range files {
		dir := "api/v1alpha1"
		if filepath.Ext(file.Name()) == ".yaml" {
			dir = "config/crd/bases"
		}
		should, err := os.ReadFile(filepath.Join(temp, file.Name()))
		if err != nil {
			b.Fatalf("%v", err)
		}
		is, err := os.ReadFile(filepath.Join(p.dir, dir, file.Name()))
		if err != nil || !bytes.Equal(is, should) {
			b.Fatalf("%s/%s is not what make generate manifests writes", dir, file.Name())
		}
	}
}

// before are the names of the stage.
var before = regexp.MustCompile(`(?i)lolcow|my\.domain|workbook`)

// names fails if a name of the stage is in a file, or in the name of one.
func (p *project) names(b *check.B) {
	err := fs.WalkDir(os.DirFS(p.dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if entry.IsDir() && (entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		if before.MatchString(path) {
			b.Fatalf("%s: the name has a name of the stage in it", path)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(filepath.Join(p.dir, path))
		if err != nil {
			return err
		}
		for line := range bytes.Lines(content) {
			if before.Match(line) && !bytes.ContainsRune(content, 0) {
				b.Fatalf("%s: %s", path, bytes.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		b.Fatalf("reading the copy: %v", err)
	}
}
