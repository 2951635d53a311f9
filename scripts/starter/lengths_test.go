package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// controller-gen wraps the descriptions of a CRD, so that each length of a name breaks their lines in other places. What
// is kept is found all the same, for each stage and each length that is accepted.
func TestNamesOfEveryLength(t *testing.T) {
	t.Parallel()
	_ = os.Getenv("REPOSITORY_SUM") // so that Go's cache of results sees a change of these files
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range stageNumbers(repo) {
		s, err := findStage(t.Context(), repo, number)
		if err != nil {
			t.Fatal(err)
		}
		keep, err := compile(s.hints.Keep)
		if err != nil {
			t.Fatal(err)
		}
		crds := map[string]string{}
		for _, file := range s.files {
			if strings.HasPrefix(file, "config/crd/bases/") {
				content, err := os.ReadFile(filepath.Join(repo, s.dir, file))
				if err != nil {
					t.Fatal(err)
				}
				crds[file] = string(content)
			}
		}
		for length := 3; length <= 40; length++ {
			o := optionsFor(repo)
			o.Dest, o.Kind = t.TempDir(), "B"+strings.Repeat("n", length-1)
			if err := o.checkKind(); (err == nil) != (length <= maxKind) {
				t.Errorf("KIND=%s: got %v", o.Kind, err)
			}
			if length > maxKind {
				continue
			}
			r := newRenamer(s.names(o), keep)
			from := map[string]origin{}
			for file, content := range crds {
				renamed, err := r.rewrite(file, []byte(content))
				if err != nil {
					t.Fatal(err)
				}
				to := r.text(place{file: file, part: "path"}, file)
				from[to] = origin{file: s.dir + "/" + file, name: file, to: file}
				put(t, filepath.Join(o.Dest, to), wrapped(t, renamed))
			}
			left, err := leftovers(o.Dest, r, from)
			if err != nil || len(left) > 0 {
				t.Errorf("STAGE=%s KIND=%s: %v, left:\n%s", number, o.Kind, err, strings.Join(left, "\n"))
			}
		}
	}
}

// wrapped writes a manifest as controller-gen does: a line of a text has at most 80 columns.
func wrapped(t *testing.T, manifest []byte) string {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(manifest, &value); err != nil {
		t.Fatal(err)
	}
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
