package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRepoAndHarness(t *testing.T) {
	for name, row := range map[string]struct {
		files                 []string
		from, repo, harnessIn string
	}{
		"the repository":                     {[]string{"my/shared/config/harness.env"}, "my/02/api", "my", "my"},
		"a starter":                          {[]string{"my/go.mod", "my/hack/harness/shared/config/harness.env"}, "my/test/e2e", "my", "my/hack/harness"},
		"the harness of a starter":           {[]string{"my/go.mod", "my/hack/harness/shared/config/harness.env"}, "my/hack/harness/shared", "my", "my/hack/harness"},
		"a clone that is called so":          {[]string{"my/hack/harness/shared/config/harness.env"}, "my/hack/harness/02", "my/hack/harness", "my/hack/harness"},
		"a clone in a folder that is not so": {[]string{"my/shack/harness/shared/config/harness.env"}, "my/shack/harness", "my/shack/harness", "my/shack/harness"},
		"beside a clone":                     {[]string{"my/hack/harness/shared/config/harness.env"}, "my/other", "", ""},
		"a starter inside a clone called so": {[]string{"hack/harness/shared/config/harness.env", "hack/harness/my/go.mod", "hack/harness/my/hack/harness/shared/config/harness.env"}, "hack/harness/my", "hack/harness/my", "hack/harness/my/hack/harness"},
		"nowhere":                            {nil, "my", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range row.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(filepath.Join(root, row.from), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Chdir(filepath.Join(root, row.from))
			for what, find := range map[string]struct {
				get  func() (string, error)
				want string
			}{"Repo": {Repo, row.repo}, "Harness": {Harness, row.harnessIn}} {
				got, err := find.get()
				want := ""
				if find.want != "" {
					want = filepath.Join(root, find.want)
				}
				if got != want || (err != nil) != (want == "") {
					t.Errorf("%s: got %q, %v, want %q", what, got, err, want)
				}
			}
		})
	}
}

func TestTheStagesOfARepositoryAndOfAStarter(t *testing.T) {
	for name, row := range map[string]struct {
		files []string
		from  string
		want  []string
	}{
		"the repository": {
			[]string{"shared/config/harness.env", "02/config/crd/kustomization.yaml", "01/config/crd/kustomization.yaml", "docs/a.md"},
			"02/config", []string{"01", "02"},
		},
		"a starter": {
			[]string{"go.mod", "hack/harness/shared/config/harness.env", "config/crd/kustomization.yaml"}, "hack/harness/shared", []string{"."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range row.files {
				path := filepath.Join(root, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(filepath.Join(root, row.from))
			var want []string
			for _, dir := range row.want {
				want = append(want, filepath.Join(root, dir))
			}
			if got, err := Stages(); err != nil || !slices.Equal(got, want) {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}
