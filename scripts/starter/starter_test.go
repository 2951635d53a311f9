package main

import (
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

//go:embed testdata/repo.txtar
var repoArchive []byte

// newRepo is a repository with one small stage of two kinds, as git clones it.
func newRepo(t *testing.T) string {
	t.Helper()
	repo := filepath.Join(t.TempDir(), "repo")
	for _, file := range txtar.Parse(repoArchive).Files {
		put(t, filepath.Join(repo, file.Name), string(file.Data))
	}
	git(t, repo, "init", "--quiet")
	git(t, repo, "add", "--all")
	return repo
}

func git(t *testing.T, repo string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = repo
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func put(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func optionsFor(repo string) options {
	return options{
		Stage: "3", Dest: filepath.Join(filepath.Dir(repo), "dest", "my-op"),
		Module: "github.com/me/my-op", Domain: "me.dev", Kind: "Teapot",
	}
}

// start runs the whole program but for the verification.
func start(t *testing.T, repo string, o options) error {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(o.Dest), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(repo)
	return run(t.Context(), o)
}

// files reads all files below dir.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		name, _ := filepath.Rel(dir, file)
		out[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStarter(t *testing.T) {
	repo := newRepo(t)
	put(t, filepath.Join(repo, "03-flux", "bin", "ignored.go"), "package flux")
	put(t, filepath.Join(repo, "03-flux", "vendor", "example.org", "x.go"), "package x") // by go mod vendor
	o := optionsFor(repo)
	if err := start(t, repo, o); err != nil {
		t.Fatal(err)
	}
	got := files(t, o.Dest)

	var names []string
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		".gitattributes", ".github/workflows/ci.yml", ".gitignore", ".golangci.yml", "LICENSE", "Makefile", "PROJECT", "README.md",
		"api/v1alpha1/teapotsetup_types.go", "config/samples/teapot.yaml", "go.mod",
		"hack/harness/scripts/harness.mk", "hack/harness/shared/config/harness.env", "hack/harness/shared/go.mod",
		"internal/broker/broker.go", "internal/broker/entrypoint.sh.tmpl", "internal/controller/broker.go", "test/e2e/go.mod",
		"test/e2e/suite_test.go", "test/standin/cmd/flux/main.go",
	}
	if !slices.Equal(names, want) {
		t.Errorf("files:\n got %q\nwant %q", names, want)
	}
	for file, parts := range map[string][]string{
		"Makefile":                               {"HARNESS ?= hack/harness\n"},
		"PROJECT":                                {"domain: me.dev\n", "projectName: teapot\n", "kind: TeapotSetup\n", "repo: github.com/me/my-op\n"},
		"README.md":                              {"# my-op\n", "Teapot and TeapotSetup", "`me.dev/v1alpha1`", "kubectl get teapots\n", "| `api/` |", "## The harness is a copy", "`.github/workflows/ci.yml`", "\n| `internal/controller/` | the broker of a Teapot |\n| `cmd/` |"},
		"api/v1alpha1/teapotsetup_types.go":      {"type TeapotSetup struct", "shortName=teas", "shortName=tea\n", "type Teapot struct", "'me.dev/'", "at /flux: there"},
		"config/samples/teapot.yaml":             {"apiVersion: me.dev/v1alpha1\n", "name: teapot-sample\n", "command: flux start\n"},
		"internal/controller/broker.go":          {`exec.Command("flux", "start")`, `"FLUX_URI"`, `"broker.toml"`, `"teapot-config"`, "newTeapotBroker", "By `make\n// run` or `make\n// e2e`."},
		".github/workflows/ci.yml":               {"make test\n", "make e2e CLUSTER=embedded\n", "go-version-file: go.mod\n"},
		"internal/broker/entrypoint.sh.tmpl":     {"flux broker ${flux_options}", "# Flux is"},
		"test/standin/cmd/flux/main.go":          {`"flux: not Flux"`, `"github.com/me/my-op/internal/broker"`},
		"test/e2e/go.mod":                        {"module github.com/me/my-op/test/e2e\n", "hack/harness/shared => ../../hack/harness/shared\n"},
		"hack/harness/shared/config/harness.env": {"PROJECT=my-op-"},
		"hack/harness/shared/go.mod":             {"module github.com/me/my-op/hack/harness/shared\n"},
	} {
		for _, part := range parts {
			if !strings.Contains(got[file], part) {
				t.Errorf("%s does not hold %q:\n%s", file, part, got[file])
			}
		}
	}
}

// A stage that says nothing of its folders has the reconciler where kubebuilder puts it.
func TestReadmeNamesTheUsualFolder(t *testing.T) {
	s := &stage{Resources: []resource{{Kind: "Lolcow", Domain: "my.domain", Version: "v1alpha1"}}}
	dest := t.TempDir()
	if err := writeReadme(dest, options{Module: "github.com/me/my-op", Domain: "me.dev", Kind: "Teapot"}, s, newRenamer(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dest)["README.md"]; !strings.Contains(got, "\n| `internal/controller/` | the reconciler |\n") {
		t.Errorf("got:\n%s", got)
	}
}

func TestStarterLeavesNothingWhenItFails(t *testing.T) {
	tests := []struct {
		name   string
		change func(*options)
		files  map[string]string // added to the stage
		want   string            // part of the error
	}{
		{name: "an unknown stage", change: func(o *options) { o.Stage = "7" }, want: "STAGE=7"},
		{name: "a bad kind", change: func(o *options) { o.Kind = "tea" }, want: "CamelCase"},
		{name: "a kind that the stage uses", change: func(o *options) { o.Kind = "Broker" }, want: "broker redeclared"},
		{name: "a kind that go test takes for a test", change: func(o *options) { o.Kind = "Test" }, files: map[string]string{
			"internal/broker/of_test.go": "package broker\n\nfunc FluxOf(s string) string { return s }\n",
		}, want: "wrong signature for TestOf"},
		{name: "a kind that a manifest uses", change: func(o *options) { o.Kind = "Index" }, files: map[string]string{
			"config/samples/other.yaml": "metadata:\n  name: index\n",
		}, want: "index is used in 03-flux/config/samples/other.yaml"},
		{name: "a kind that is a word of Go", change: func(o *options) { o.Kind = "Func" }, want: "a word of Go"},
		{name: "a kind that is a type of Go", change: func(o *options) { o.Kind = "Error" }, want: "a word of Go"},
		{name: "a generator that fails", files: map[string]string{
			"Makefile": "HARNESS ?= ..\ngenerate:\n\t@echo no luck; exit 1\n",
		}, want: "no luck"},
		{name: "a name that the renamer does not see", files: map[string]string{"api/v1alpha1/myfluxsetup.txt": "x"}, want: "old names are left"},
		{name: "a file of Go that is none", files: map[string]string{"internal/controller/broker.go": "x"}, want: "broker.go"},
		{name: "a rule that is none", files: map[string]string{"hack/starter.yaml": "keep: [{match: '('}]"}, want: "hack/starter.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			repo := newRepo(t)
			for file, content := range tt.files {
				put(t, filepath.Join(repo, "03-flux", file), content)
			}
			git(t, repo, "add", "--all")
			o := optionsFor(repo)
			if tt.change != nil {
				tt.change(&o)
			}
			err := start(t, repo, o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
			entries, err := os.ReadDir(filepath.Dir(o.Dest))
			if err != nil || len(entries) > 0 {
				t.Errorf("it left %v, %v", entries, err)
			}
		})
	}
}

// A file is part of the stage before it is added: without it the copy would not build.
func TestStarterCopiesWhatIsNotAddedYet(t *testing.T) {
	repo := newRepo(t)
	put(t, filepath.Join(repo, "03-flux", "internal", "new.go"), "package internal")
	if err := os.Remove(filepath.Join(repo, "03-flux", "config", "samples", "flux.yaml")); err != nil {
		t.Fatal(err)
	}
	o := optionsFor(repo)
	if err := start(t, repo, o); err != nil {
		t.Fatal(err)
	}
	got := files(t, o.Dest)
	if _, there := got["internal/new.go"]; !there {
		t.Error("a file that is not added yet was left out")
	}
	if _, there := got["config/samples/teapot.yaml"]; there {
		t.Error("a file that was deleted was copied")
	}
}

func TestStarterSaysWhyGitDoesNotTell(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(repo string) error
		want    string
	}{
		"no repository": {func(repo string) error { return os.RemoveAll(filepath.Join(repo, ".git")) }, "not a git repository"},
		"of another owner": {func(repo string) error {
			if os.Getuid() != 0 {
				t.Skip("only root can give a folder away")
			}
			return errors.Join(os.Chown(repo, 12345, -1), os.Chown(filepath.Join(repo, ".git"), 12345, -1))
		}, "safe.directory"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := newRepo(t)
			t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(repo))
			if err := test.prepare(repo); err != nil {
				t.Fatal(err)
			}
			if err := start(t, repo, optionsFor(repo)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestStarterInAFolderOfAnotherRepository(t *testing.T) {
	repo := newRepo(t)
	if err := os.RemoveAll(filepath.Join(repo, ".git")); err != nil {
		t.Fatal(err)
	}
	git(t, filepath.Dir(repo), "init", "--quiet")
	git(t, filepath.Dir(repo), "add", "--all")
	if err := start(t, repo, optionsFor(repo)); err != nil {
		t.Error(err)
	}
}

// A workspace above the copy claims it: no command of Go works there.
func TestStarterBelowAWorkspace(t *testing.T) {
	repo := newRepo(t)
	o := optionsFor(repo)
	put(t, filepath.Join(filepath.Dir(o.Dest), "go.work"), "go 1.26.0\n")
	t.Setenv("GOWORK", "")
	if err := start(t, repo, o); err == nil || !strings.Contains(err.Error(), "go.work claims") {
		t.Errorf("got error %v, want one that names the workspace", err)
	}
	t.Setenv("GOWORK", "off")
	if err := start(t, repo, o); err != nil {
		t.Errorf("the workspace is switched off: %v", err)
	}
}

// What looks like a pattern in the path of a clone is none.
func TestStarterInAFolderWithBrackets(t *testing.T) {
	repo := newRepo(t)
	brackets := filepath.Join(filepath.Dir(repo), "my [x]")
	if err := os.Rename(repo, brackets); err != nil {
		t.Fatal(err)
	}
	if err := start(t, brackets, optionsFor(brackets)); err != nil {
		t.Error(err)
	}
}

func TestStarterFillsAnEmptyFolder(t *testing.T) {
	repo := newRepo(t)
	o := optionsFor(repo)
	if err := os.MkdirAll(o.Dest, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := start(t, repo, o); err != nil {
		t.Fatal(err)
	}
	if len(files(t, o.Dest)) == 0 {
		t.Error("it is still empty")
	}
}

func TestStarterOfASecondMajorVersion(t *testing.T) {
	repo := newRepo(t)
	o := optionsFor(repo)
	o.Module += "/v2"
	if err := start(t, repo, o); err != nil {
		t.Fatal(err)
	}
	got := files(t, o.Dest)["test/e2e/go.mod"]
	for _, part := range []string{"github.com/me/my-op/v2 v2.0.0\n", "github.com/me/my-op/v2/hack/harness/shared v0.0.0\n", "github.com/me/my-op/v2 => ../..\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("test/e2e/go.mod does not hold %q:\n%s", part, got)
		}
	}
}

// A name that is written as in the stage, but belongs to the new module, is not a leftover.
func TestStarterMayBeCalledLikeTheStage(t *testing.T) {
	repo := newRepo(t)
	o := optionsFor(repo)
	o.Module = "github.com/me/fluxsetup-operator"
	o.Kind = "MyFluxSetup"
	if err := start(t, repo, o); err != nil {
		t.Fatal(err)
	}
}
