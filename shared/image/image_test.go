package image

import (
	"debug/elf"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
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
		t.Error("changed code has the same name, so it would not be rolled out")
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

// A program that is built with the reader's flags would ask for an interpreter that an image from scratch lacks, or need cgo.
func TestProgramsAreStaticWhateverGOFLAGSIs(t *testing.T) {
	for _, flags := range []string{"-buildmode=pie", "-race", "-asan"} {
		t.Setenv("GOFLAGS", flags)
		binary, err := Binary(t.Context(), newStage(t), "manager", "linux", "amd64")
		if err != nil {
			t.Errorf("GOFLAGS=%s: %v", flags, err)
			continue
		}
		program, err := elf.Open(binary)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range program.Progs {
			if part.Type == elf.PT_INTERP {
				t.Errorf("GOFLAGS=%s: the program needs an interpreter", flags)
			}
		}
		if err := program.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The programs of an image run as a user who does not own them.
func TestProgramsCanBeRunByAnyUser(t *testing.T) {
	umask := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(umask) })
	dir := newStage(t)
	binary, err := Binary(t.Context(), dir, "manager", runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "bin", "copied")
	if err := install([]byte("program"), copied); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{binary, copied} {
		if info, err := os.Stat(program); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: got %v, %v, want the mode 0755", program, info.Mode(), err)
		}
	}
}

// An image that was made with other modes must not be used for this one.
func TestReferenceFollowsTheModes(t *testing.T) {
	dir := newStage(t)
	binary := filepath.Join(dir, "manager")
	named := map[string]os.FileMode{}
	for _, mode := range []os.FileMode{0o700, 0o755} {
		if err := errors.Join(os.WriteFile(binary, []byte("program"), mode), os.Chmod(binary, mode)); err != nil {
			t.Fatal(err)
		}
		ref, err := reference(dir, "manager", []string{binary})
		if err != nil {
			t.Fatal(err)
		}
		named[ref] = mode
	}
	if len(named) != 2 {
		t.Errorf("programs of two modes give one image: %v", named)
	}
}
