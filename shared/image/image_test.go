package image

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const dockerfile = `FROM scratch AS server
COPY bin/linux-${TARGETARCH}/server /
# FROM scratch AS comment
from scratch
COPY x /
from --platform=linux scratch as manager
copy --chmod=755 bin/linux-${TARGETARCH}/manager bin/linux-${TARGETARCH}/server /bin/
FROM scratch AS busybox
COPY bin/linux-${TARGETARCH}/no-such-program /
`

// newStage writes a stage with two programs and returns its folder.
func newStage(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "05-Teapot")
	for name, content := range map[string]string{
		"go.mod":                            "module example.com/teapot\n\ngo 1.26.0\n",
		"cmd/main.go":                       "package main\n\nfunc main() { println(\"one\") }\n",
		"cmd/server/run.go":                 "package main\n\nfunc main() { println(\"server\") }\n",
		"Dockerfile":                        dockerfile,
		"config/default/kustomization.yaml": "images:\n- name: controller\n  newTag: a\n- name: server\n  newTag: a\n- name: sidecar\n  newTag: a\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTargets(t *testing.T) {
	got, err := Targets(newStage(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"controller": "manager", "server": "server"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// refs builds both programs and names their images.
func refs(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range []string{"manager", "server"} {
		binary, err := Binary(t.Context(), dir, name, runtime.GOOS, runtime.GOARCH)
		if err != nil {
			t.Fatal(err)
		}
		if out[name], err = reference(dir, name, []string{binary}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestReferenceFollowsTheCode(t *testing.T) {
	dir := newStage(t)
	before := refs(t, dir)
	if !strings.HasPrefix(before["manager"], "example.com/workbook/05-teapot-manager:") {
		t.Errorf("unexpected name %s", before["manager"])
	}
	if err := os.RemoveAll(filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	if again := refs(t, dir); !maps.Equal(before, again) {
		t.Errorf("the same code has another name: %v, %v", before, again)
	}

	main := filepath.Join(dir, "cmd", "main.go")
	if err := os.WriteFile(main, []byte("package main\n\nfunc main() { println(\"two\") }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	after := refs(t, dir)
	if after["manager"] == before["manager"] {
		t.Error("changed code has the same name, so nobody would roll it out")
	}
	if after["server"] != before["server"] {
		t.Error("a change of the operator renames the server's image, so every server would be rolled")
	}
}

func TestBinaryShowsTheCompilersError(t *testing.T) {
	dir := newStage(t)
	if err := os.WriteFile(filepath.Join(dir, "cmd", "main.go"), []byte("package main\n\nfunc main() { tea() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Binary(t.Context(), dir, "manager", runtime.GOOS, runtime.GOARCH)
	if err == nil || !strings.Contains(err.Error(), "undefined: tea") {
		t.Errorf("got error %v, want the compiler's", err)
	}
}
