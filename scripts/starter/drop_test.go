package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What only shows something stays in the workbook, with the targets that run it and the modules that only it needs. A kind
// may be called like what is in it.
func TestStarterDrops(t *testing.T) {
	// A module that is here, for it is needed by this program.
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	module := regexp.MustCompile(`golang.org/x/mod v[0-9.]+`).FindString(string(sums))
	repo := newRepo(t)
	rules, err := os.ReadFile(filepath.Join(repo, "03-flux", "hack", "starter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		"hack/starter.yaml":          string(rules) + "drop:\n- lesson/\n- internal/broker/lesson.go\n",
		"Makefile":                   "HARNESS ?= ..\ngenerate manifests:\n\t@:\n# starter: not in a copy\nwatch:\n\tgo run ./lesson\n# starter: end\ntest:\n",
		"go.mod":                     "module example.com/workbook/03-flux\n\ngo 1.26.0\n\nrequire " + module + "\n",
		"go.sum":                     string(sums),
		"lesson/main.go":             "package main\n\nimport _ \"golang.org/x/mod/semver\"\n\ntype Flux struct{}\n\ntype Teapot struct{}\n\nfunc main() {}\n",
		"internal/broker/broker.go":  "package broker\n\nconst Dir = \"/run\"\n",
		"internal/broker/lesson.go":  "package broker\n\nimport _ \"golang.org/x/mod/semver\"\n",
		"internal/broker/lessons.go": "package broker\n",
	} {
		put(t, filepath.Join(repo, "03-flux", file), content)
	}
	o := optionsFor(repo)
	if err := start(t, repo, o); err != nil {
		t.Fatal(err)
	}
	got := files(t, o.Dest)
	for name := range got {
		if strings.HasPrefix(name, "lesson/") || name == "internal/broker/lesson.go" {
			t.Errorf("%s was copied", name)
		}
	}
	if got["internal/broker/lessons.go"] == "" {
		t.Error("more was dropped than was said")
	}
	if want := "HARNESS ?= hack/harness\ngenerate manifests:\n\t@:\ntest:\n"; got["Makefile"] != want {
		t.Errorf("got the Makefile\n%s\nwant\n%s", got["Makefile"], want)
	}
	if strings.Contains(got["go.mod"], "require") {
		t.Errorf("got a go.mod that requires what nothing needs:\n%s", got["go.mod"])
	}
}

func TestCut(t *testing.T) {
	const begin, end, mistake = "# " + cutBegin + "\n", "# " + cutEnd + "\n", "a mistake"
	for text, want := range map[string]string{
		"a\n":                                   "a\n",
		"a\n" + begin + "b\n" + end + "c\n":     "a\nc\n",
		begin + end + begin + "b\n" + end:       "",
		"a\n" + end:                             mistake,
		begin + "b\n":                           mistake,
		begin + begin + "b\n" + end:             mistake,
		"a\n\t" + begin + "b\n\t" + end + "c\n": "a\n\t" + begin + "b\n\t" + end + "c\n",
	} {
		got, err := cut([]byte(text), "# ")
		if err != nil {
			got = []byte(mistake)
		}
		if string(got) != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestCutOfGo(t *testing.T) {
	const text = "func f() {\n\t// " + cutBegin + "\n\tg()\n\t// " + cutEnd + "\n\th() // " + cutBegin + "\n}\n"
	got, err := cut([]byte(text), "// ")
	if want := "func f() {\n\th() // " + cutBegin + "\n}\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
