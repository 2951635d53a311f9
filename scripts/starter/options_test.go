package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestOptions(t *testing.T) {
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	full := filepath.Join(dir, "full")
	for _, folder := range []string{repo, full, filepath.Join(dir, "empty"), filepath.Join(full, "x")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(repo, link); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(*options)
		want   string // part of the error; empty: none
	}{
		{"all is well", func(*options) {}, ""},
		{"an empty folder", func(o *options) { o.Dest = filepath.Join(dir, "empty") }, ""},
		{"a module of a second major version", func(o *options) { o.Module = "github.com/me/my-op/v2" }, ""},
		{"one letter", func(o *options) { o.Kind = "Tx" }, ""},

		{"nothing", func(o *options) { *o = options{} }, "STAGE, DEST, MODULE, DOMAIN, KIND missing"},
		{"no kind", func(o *options) { o.Kind = "" }, "KIND missing"},
		{"a full folder", func(o *options) { o.Dest = full }, "is not empty"},
		{"a file", func(o *options) { o.Dest = os.Args[0] }, "cannot be used"},
		{"inside the repository", func(o *options) { o.Dest = filepath.Join(repo, "x") }, "inside this repository"},
		{"inside the repository, through a link", func(o *options) { o.Dest = filepath.Join(link, "x") }, "inside this repository"},
		{"no parent", func(o *options) { o.Dest = filepath.Join(dir, "no", "where") }, "there is no folder"},
		{"kind in small letters", func(o *options) { o.Kind = "teapot" }, "not in CamelCase"},
		{"kind with a dash", func(o *options) { o.Kind = "Tea-Pot" }, "not in CamelCase"},
		{"kind in capitals", func(o *options) { o.Kind = "TEAPOT" }, "not in CamelCase"},
		{"kind of another alphabet", func(o *options) { o.Kind = "Käse" }, "not in CamelCase"},
		{"kind too long", func(o *options) { o.Kind = "T" + strings.Repeat("e", 40) }, "too long"},
		{"kind that YAML takes for a boolean", func(o *options) { o.Kind = "Off" }, "in YAML the word is no string"},
		{"kind that YAML takes for nothing", func(o *options) { o.Kind = "Null" }, "in YAML the word is no string"},
		{"kind like a list", func(o *options) { o.Kind = "TeaList" }, "ends in List"},
		{"kind that is its own plural", func(o *options) { o.Kind = "Series" }, "its own plural"},
		{"module without a domain", func(o *options) { o.Module = "my-op" }, "not a module path"},
		{"module with a blank", func(o *options) { o.Module = "github.com/me/my op" }, "not a module path"},
		{"module with a trailing slash", func(o *options) { o.Module = "github.com/me/" }, "not a module path"},
		{"module whose last word has no letter", func(o *options) { o.Module = "github.com/me/_" }, "needs a letter or a digit in its last word"},
		{"module in a folder that Go imports nothing from", func(o *options) { o.Module = "github.com/me/vendor/my-op" }, "called vendor"},
		{"module of gopkg.in", func(o *options) { o.Module = "gopkg.in/me/my-op.v2" }, "ends in a version"},
		{"domain with a capital", func(o *options) { o.Domain = "Me.dev" }, "not a domain"},
		{"domain with a slash", func(o *options) { o.Domain = "me.dev/x" }, "not a domain"},
		{"domain without a dot", func(o *options) { o.Domain = "me" }, "needs a dot"},
		{"domain of Kubernetes", func(o *options) { o.Domain = "tea.k8s.io" }, "belongs to Kubernetes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options{Stage: "2", Dest: filepath.Join(dir, "new"), Module: "github.com/me/my-op", Domain: "me.dev", Kind: "Teapot"}
			tt.change(&o)
			err := o.check(repo)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestOptionsTellsEverythingThatIsWrong(t *testing.T) {
	o := options{Stage: "2", Dest: filepath.Join(t.TempDir(), "x"), Module: "x", Domain: "x", Kind: "x"}
	err := o.check("elsewhere")
	for _, name := range []string{"MODULE", "DOMAIN", "KIND"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not speak of %s: %v", name, err)
		}
	}
}

func TestProject(t *testing.T) {
	for module, want := range map[string]string{
		"github.com/me/my-op":                               "my-op",
		"github.com/me/my-op/v2":                            "my-op",
		"github.com/me/My_Op.x":                             "my-op-x",
		"github.com/me/" + strings.Repeat("a", 24) + "-bcd": strings.Repeat("a", 24),
	} {
		if got := (&options{Module: module}).project(); got != want {
			t.Errorf("project of %s = %q, want %q", module, got, want)
		}
	}
}

// make cluster-delete ends a cluster by its name: no two projects may share one.
func TestClusterNamesDifferWhereModulesDo(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`) // the harness takes no other
	seen := map[string]string{"workbook": "the workbook itself"}
	for _, module := range []string{
		"example.com/workbook", "github.com/me/workbook", "github.com/you/workbook", "github.com/me/workbook/v2",
		"github.com/me/my-op", "github.com/me/my_op", "github.com/me/" + strings.Repeat("a", 60), "github.com/you/" + strings.Repeat("a", 60),
	} {
		name := (&options{Module: module}).cluster()
		for _, suffix := range []string{"", "-bench"} { // make bench has a cluster of its own
			if !valid.MatchString(name + suffix) {
				t.Errorf("%s: %q is no name for a cluster", module, name+suffix)
			}
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s share the cluster %s", module, other, name)
		}
		seen[name] = module
	}
}
