package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var herd = []stage{{"02-cow", []string{"Cow"}}, {"03-pig", []string{"Pig", "PigSty"}}}

const (
	cow = "02-cow/internal/controller/"
	pig = "03-pig/internal/controller/"
)

// edit replaces, in the clean stages, a text of a file. Without the old text the file is added; without either it is
// removed.
type edit struct{ file, old, new string }

func write(t *testing.T, edits ...edit) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/clean.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, file := range archive.Files {
		files[file.Name] = string(file.Data)
	}
	for _, e := range edits {
		switch before := files[e.file]; {
		case e.old != "" && !strings.Contains(before, e.old):
			t.Fatalf("%s has no %q", e.file, e.old)
		case e.old != "":
			files[e.file] = strings.Replace(before, e.old, e.new, 1)
		case e.new != "":
			files[e.file] = e.new
		default:
			delete(files, e.file)
		}
	}
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestEachDeviationIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		edits   []edit
		allowed []exception
		want    []string // parts of the problems; none: it is clean
	}{
		"clean": {},
		"a file that is not listed": {
			edits: []edit{{cow + "more.go", "", "package controller\n"}},
			want:  []string{"02-cow/internal/controller: the package comment does not list more.go"},
		},
		"a file that is listed and not there": {
			edits: []edit{{cow + "cow_controller.go", "//	errors.go", "//	gone.go          nothing\n//	errors.go"}},
			want:  []string{"lists what is not there: gone.go"},
		},
		"a file that is listed twice": {
			edits: []edit{{pig + "errors.go", "package", "// Package controller again.\n//\n//	errors.go errors\npackage"}},
			want:  []string{"03-pig/internal/controller: the package comment lists more than once errors.go"},
		},
		"a call up": {
			edits: []edit{{cow + "messages.go", `"moo"`, `"moo"` + "\n)\n\nfunc up() { setCondition() }\n\nconst ("}},
			want:  []string{"messages.go:8: up → setCondition: up to the earlier conditions.go"},
		},
		"a method up": {
			edits: []edit{{cow + "messages.go", "n.Name()", "n.(observation).Name()"}},
			want:  []string{"messages.go:10: nameOf → observation.Name: up to the earlier status.go"},
		},
		"a function value up, of a generic function": {
			edits: []edit{{cow + "conditions.go", "func", "var apply = applyAll[string]\n\nfunc"}},
			want:  []string{"conditions.go:3: apply → applyAll: up to the earlier apply.go"},
		},
		"a table of functions up": {
			edits: []edit{
				{cow + "status.go", "func byName", "var steps = []struct{ do func() }{{setCondition}}\n\nfunc byName"},
				{cow + "errors.go", "{ return err }", "{\n\tsteps[0].do()\n\treturn err\n}"},
				{pig + "errors.go", "{ return err }", "{\n\tsteps[0].do()\n\treturn err\n}"},
				{pig + "messages.go", "const", "var steps = []struct{ do func() }{{}}\n\nconst"},
			},
			want: []string{"02-cow/internal/controller/errors.go:4: classify → steps: up to the earlier status.go"},
		},
		"files in another order": {
			edits: []edit{
				{pig + "pig_controller.go", "//	conditions.go         conditions\n", ""},
				{pig + "pig_controller.go", "//	apply.go ", "//	conditions.go         conditions\n//	apply.go "},
			},
			want: []string{"comes before", "in 02-cow (Cow), and after it in 03-pig (Pig)"},
		},
		"a kind's file in another order": {
			edits: []edit{
				{pig + "pig_controller.go", "//	pigsty_status.go      pure\n", ""},
				{pig + "pig_controller.go", "//	messages.go           texts\n", "//	messages.go           texts\n//	pigsty_status.go      pure\n"},
			},
			want: []string{"status.go comes before conditions.go in", "03-pig (PigSty)"},
		},
		"another text": {
			edits: []edit{{pig + "report.go", "o.name + text", "text + o.name"}},
			want: []string{
				"03-pig/internal/controller/report.go:4: report differs from 02-cow/internal/controller/report.go:4:\n" +
					"    - func report(o observation) string { return o.name + text }\n" +
					"    + func report(o observation) string { return text + o.name }",
			},
		},
		"another comment": {
			edits: []edit{{pig + "messages.go", "// text of", "// text for"}},
			want:  []string{"messages.go:5: text differs", "+ // text for"},
		},
		"another text that is allowed": {
			edits:   []edit{{pig + "report.go", "o.name + text", "text + o.name"}},
			allowed: []exception{{"03-pig", "report", "pigs are reported on in another order"}},
		},
		"an exception without need": {
			allowed: []exception{{"03-pig", "report", "pigs are reported on in another order"}},
			want:    []string{"03-pig: the exception for report is not needed"},
		},
		"another place": {
			edits: []edit{
				{pig + "errors.go", "func classify(err error) error { return err }", ""},
				{pig + "pig_status.go", "type pigObservation", "func classify(err error) error { return err }\n\ntype pigObservation"},
				{cow + "errors.go", "func classify", "func fatal() {}\n\nfunc classify"},
				{pig + "errors.go", "package controller", "package controller\n\nfunc fatal() {}"},
			},
			want: []string{"pig_status.go:5: classify is in pig_status.go, and in errors.go at 02-cow/"},
		},
		"another text in cmd/main.go": {
			edits: []edit{{"03-pig/cmd/main.go", `"Pig"`, `"Boar"`}},
			want:  []string{"03-pig/cmd/main.go:6: managerOptions.bindFlags differs"},
		},
		"another text of what is common in other files": {
			edits: []edit{{pig + "watches.go", "return 30", "return 60"}},
			want:  []string{"newRateLimiter differs from 02-cow/internal/controller/watches.go"},
		},
		"nothing to compare in a common file": {
			edits: []edit{{pig + "conditions.go", "setCondition", "setAnother"}},
			want:  []string{"conditions.go: no two stages have a declaration of it in common"},
		},
		"nothing to compare in cmd/main.go": {
			edits: []edit{{"03-pig/cmd/main.go", "validate", "check"}},
			want:  []string{"cmd/main.go: managerOptions.validate: no two stages"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operators, err := loadAll(t.Context(), write(t, test.edits...), herd)
			if err != nil {
				t.Fatal(err)
			}
			problems := check(operators, test.allowed)
			if len(test.want) == 0 && len(problems) > 0 || len(test.want) > 0 && len(problems) == 0 {
				t.Fatalf("problems: %q", problems)
			}
			for _, part := range test.want {
				if !strings.Contains(strings.Join(problems, "\n"), part) {
					t.Errorf("no %q in %q", part, problems)
				}
			}
		})
	}
}

func TestTheFirstStageHasTheSameText(t *testing.T) {
	for name, test := range map[string]struct {
		declares, want string
	}{
		"the same, for another kind": {"// conditionOf is of a Calf.\nfunc conditionOf() string { return \"calf\" }", ""},
		"another text":               {"// conditionOf is of a Calf.\nfunc conditionOf() string { return \"cow\" }", "conditionOf differs from"},
		"nothing to compare":         {"func other() {}", "01-calf: conditionOf is not declared here and in another stage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := write(t, edit{"01-calf/internal/foo/errors.go", "", "package foo\n\n" + test.declares + "\n"},
				edit{cow + "conditions.go", "package controller\n", "package controller\n\n// conditionOf is of a Cow.\nfunc conditionOf() string { return \"cow\" }\n"})
			operators, err := loadAll(t.Context(), root, herd)
			if err != nil {
				t.Fatal(err)
			}
			calf, err := loadFirst(root, stage{"01-calf", []string{"Calf"}})
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(checkFirst(calf, operators, []string{"conditionOf"}), "\n")
			if test.want == "" && problems != "" || !strings.Contains(problems, test.want) {
				t.Errorf("problems: %q", problems)
			}
		})
	}
}

// A check of nothing must fail.
func TestNothingToReadIsAnError(t *testing.T) {
	for name, edits := range map[string][]edit{
		"no package comment": {{pig + "pig_controller.go", "texts\npackage", "texts\n\npackage"}},
		"no main":            {{"03-pig/cmd/main.go", "", ""}},
		"does not compile":   {{pig + "errors.go", "return err", "return nonsense"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operators, err := loadAll(t.Context(), write(t, edits...), herd)
			if err == nil && len(check(operators, nil)) == 0 {
				t.Error("no error")
			}
		})
	}
	for name, missing := range map[string]stage{
		"no such stage": {"04-none", []string{"None"}},
		"no package":    {"05-empty", []string{"None"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := write(t, edit{"05-empty/go.mod", "", "module example.com/herd/05-empty\n"})
			if _, err := load(t.Context(), root, missing); err == nil {
				t.Error("no error")
			}
		})
	}
}
