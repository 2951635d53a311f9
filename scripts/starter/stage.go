package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"sigs.k8s.io/yaml"
)

// stage is what a stage says of itself: in its PROJECT and go.mod, and in hack/starter.yaml where
// these do not say all.
type stage struct {
	dir    string   // its folder in the repository, such as 02-lolcow
	files  []string // but for what hints.Drop lists
	module string

	ProjectName string     `json:"projectName"`
	Domain      string     `json:"domain"`
	Resources   []resource `json:"resources"`

	hints hints
}

// resource is a kind of the stage, as PROJECT lists it.
type resource struct {
	Kind    string `json:"kind"`
	Group   string `json:"group"`
	Domain  string `json:"domain"`
	Version string `json:"version"`
}

// hints is hack/starter.yaml: what cannot be known from PROJECT.
type hints struct {
	// Keep says what looks like a name of the stage and is not.
	Keep []keepRule `json:"keep"`
	// Names are further names of the stage's own, and what becomes of them; {kind} in a new name is
	// the new kind in small letters.
	Names map[string]string `json:"names"`
	// Drop lists what makes no sense in a copy, as patterns like those of keep. What the Makefile says of it stands between
	// the lines cutBegin and cutEnd.
	Drop []string `json:"drop"`
	// Folders says where the operator is, for the README of a copy. Default: internal/controller.
	Folders []folder `json:"folders"`
}

// folder is a line of the README's table of folders.
type folder struct {
	Name string `json:"name"` // as in the stage: `internal/raw/`
	What string `json:"what"`
}

// findStage reads stage number of the repository.
func findStage(ctx context.Context, repo, number string) (*stage, error) {
	found, err := fs.Glob(os.DirFS(repo), "0"+number+"-*/go.mod")
	if err != nil || len(number) != 1 || len(found) != 1 {
		return nil, fmt.Errorf("STAGE=%s: there is no such stage; there are %s", number, strings.Join(stageNumbers(repo), ", "))
	}
	dir := path.Dir(found[0])
	s := &stage{dir: dir}
	for _, part := range []struct {
		file string
		into any
	}{{"PROJECT", s}, {"hack/starter.yaml", &s.hints}} {
		content, err := os.ReadFile(filepath.Join(repo, dir, part.file))
		if errors.Is(err, os.ErrNotExist) && part.file != "PROJECT" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", dir, err)
		}
		if err := yaml.Unmarshal(content, part.into); err != nil {
			return nil, fmt.Errorf("reading %s/%s: %w", dir, part.file, err)
		}
	}
	if len(s.Resources) == 0 {
		return nil, fmt.Errorf("%s/PROJECT lists no resource", dir)
	}
	content, err := os.ReadFile(filepath.Join(repo, found[0]))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	s.module = modfile.ModulePath(content)
	if s.files, err = tracked(ctx, repo, dir); err != nil {
		return nil, err
	}
	s.files = slices.DeleteFunc(s.files, func(file string) bool { return anyOf(s.hints.Drop, file, matchesFile) })
	return s, nil
}

func stageNumbers(repo string) []string {
	found, _ := fs.Glob(os.DirFS(repo), "0[1-4]-*/go.mod")
	var out []string
	for _, file := range found {
		out = append(out, file[1:2])
	}
	return out
}

// tracked lists the files below a folder of the repository that git tracks, and those that it would if you added them,
// relative to the folder.
func tracked(ctx context.Context, repo, dir string) ([]string, error) {
	files, err := gitFiles(ctx, filepath.Join(repo, dir), "--cached", "--others", "--exclude-standard", "--", ".", ":(exclude,glob)**/vendor/**")
	if err != nil {
		return nil, err
	}
	// One that is deleted and not yet committed is tracked too.
	files = slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Lstat(filepath.Join(repo, dir, file))
		return errors.Is(err, os.ErrNotExist)
	})
	if len(files) == 0 {
		return nil, fmt.Errorf("git knows of no file of %s: see git status --ignored", dir)
	}
	return files, nil
}

// sayUntracked says which files were copied that a clone of the repository would not have.
func sayUntracked(ctx context.Context, repo string, origins []origin) error {
	files, err := gitFiles(ctx, repo, "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		return !slices.ContainsFunc(origins, func(o origin) bool { return o.file == file })
	})
	if len(files) > 0 {
		fmt.Printf("Copied too, though git does not track them yet: %s\n", strings.Join(files, ", "))
	}
	return nil
}

func gitFiles(ctx context.Context, dir string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"ls-files", "-z"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git cannot tell what to copy from %s, which must be part of a git clone: %w: %s", dir, err, strings.TrimSpace(stderr.String()))
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}

// primary is the kind that the others are named after: Flux of Flux and FluxSetup.
func (s *stage) primary() string {
	primary := s.Resources[0].Kind
	for _, resource := range s.Resources {
		if len(resource.Kind) < len(primary) {
			primary = resource.Kind
		}
	}
	return primary
}

// renamedKind is what becomes of one of the stage's kinds: FluxSetup follows Flux, and a kind that is
// not named after the primary one keeps its name.
func (s *stage) renamedKind(kind, to string) string {
	if rest, follows := strings.CutPrefix(kind, s.primary()); follows {
		return to + rest
	}
	return kind
}

// group is a resource's API group, as kubebuilder puts it together.
func group(prefix, domain string) string { return strings.Trim(prefix+"."+domain, ".") }

// names returns every name of the stage's own and what the options make of it.
func (s *stage) names(o options) []name {
	repoModule := path.Dir(s.module)
	harness := o.Module + "/hack/harness"
	names := []name{
		{old: s.module, new: o.Module, style: address},
		{old: repoModule + "/shared", new: harness + "/shared", style: address},
		{old: repoModule + "/scripts", new: harness + "/scripts", style: address},
		{old: repoModule + "/components", new: harness + "/scripts/components", style: address},
		{old: repoModule, new: o.Module, style: address},
		{old: s.dir, new: o.project(), style: address},
		{old: "make stage-" + s.dir[1:2] + " ", new: "make ", style: phrase},
		{old: "make stage-" + s.dir[1:2] + "-", new: "make ", style: phrase},
		// Where a line breaks in between.
		{old: "make stage-" + s.dir[1:2], new: "make", style: phrase},
		{old: "stage-" + s.dir[1:2] + " ", new: "", style: phrase},
	}
	// The harness and the stage speak of the repository that they are part of.
	names = append(names, word("Workbook", "Project")...)
	names = append(names, name{old: "Workbooks", new: "Projects", style: camel})

	for _, resource := range s.Resources {
		to := s.renamedKind(resource.Kind, o.Kind)
		names = append(names, kindNames(resource.Kind, to)...)

		oldGroup, newGroup := group(resource.Group, resource.Domain), o.Domain
		if resource.Group != "" {
			newGroup = group(strings.ToLower(o.Kind), o.Domain)
			names = append(names, name{old: resource.Group, new: strings.ToLower(o.Kind), style: lower})
		}
		names = append(names,
			name{old: oldGroup, new: newGroup, style: address},
			// kubebuilder's habit for the import of an API package.
			name{old: letters(oldGroup) + resource.Version, new: letters(newGroup) + resource.Version, style: lower})
	}
	// The operator's own objects are named after the project; names made of the kind are sure to be short enough.
	if s.ProjectName != "" && s.ProjectName != strings.ToLower(s.primary()) {
		names = append(names, name{old: s.ProjectName, new: strings.ToLower(o.Kind), style: lower})
	}
	for old, to := range s.hints.Names {
		names = append(names, name{old: old, new: strings.ReplaceAll(to, "{kind}", strings.ToLower(o.Kind)), style: lower})
	}
	// The first of two equal names counts: a group is often called like the kind.
	seen := map[string]bool{}
	return slices.DeleteFunc(names, func(n name) bool {
		again := seen[n.old]
		seen[n.old] = true
		return again
	})
}

func letters(domain string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' {
			return -1
		}
		return r
	}, domain)
}
