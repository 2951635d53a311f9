package image

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/workbook/shared/deploy"
)

// withBusybox has a stage list the image busybox too, and calls its program NAME.
func withBusybox(t *testing.T, program string) string {
	t.Helper()
	dir := newStage(t)
	for path, text := range map[string]string{
		"config/default/kustomization.yaml": "images:\n- name: controller\n  newTag: a\n- name: busybox\n  newTag: \"1.37\"\n",
		"Dockerfile":                        strings.ReplaceAll(dockerfile, "no-such-program", program),
	} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// toEngine tells the fake engine something, by an empty file.
func toEngine(t *testing.T, calls, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(calls), name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnImageWithoutAProgramIsTheOneOfTheConfiguration(t *testing.T) {
	for name, row := range map[string]struct {
		engine string
		pulls  bool
		fails  string
	}{
		"the engine has it":      {"pulled", false, ""},
		"the engine pulls it":    {"", true, ""},
		"the engine cannot pull": {"offline", true, "this machine has no no-such-program, and running docker pull busybox:1.37: exit status 1: no such host: have a static busybox in PATH (on Debian and Ubuntu that of `apt-get install busybox-static`)"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := fakeEngine(t)
			if row.engine != "" {
				toEngine(t, calls, row.engine)
			}
			to := &nodes{}
			var out bytes.Buffer
			images, err := ForStage(t.Context(), &out, to, withBusybox(t, "no-such-program"), nil)
			made, _ := os.ReadFile(calls)
			if pulls := strings.Contains(string(made), "pull busybox:1.37\n"); pulls != row.pulls {
				t.Errorf("the engine was called with\n%s", made)
			}
			if row.fails != "" {
				if err == nil || !strings.Contains(err.Error(), row.fails) {
					t.Errorf("got error %v, want %s", err, row.fails)
				}
				return
			}
			if want := "example.com/workbook/05-teapot-busybox:fedcba987654"; err != nil || images["busybox"] != want || len(to.loaded) != 2 {
				t.Errorf("got %v, %v, loaded %v, want %s", images, err, to.loaded, want)
			}
			if !strings.Contains(string(made), "tag busybox:1.37 "+images["busybox"]+"\n") {
				t.Errorf("the engine was called with\n%s", made)
			}
		})
	}
}

func TestForRegistry(t *testing.T) {
	calls := fakeEngine(t)
	toEngine(t, calls, "pulled")
	to := &nodes{}
	images, err := ForRegistry(t.Context(), &bytes.Buffer{}, to, withBusybox(t, "no-such-program"), nil, "k3d-devregistry:5000/")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := images["busybox"], "k3d-devregistry:5000/05-teapot-busybox:fedcba987654"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !strings.HasPrefix(images["controller"], "k3d-devregistry:5000/05-teapot-manager:") || len(to.loaded) > 0 {
		t.Errorf("got %v, loaded %v", images, to.loaded)
	}
	made, _ := os.ReadFile(calls)
	for _, ref := range images {
		own := "example.com/workbook/" + strings.TrimPrefix(ref, "k3d-devregistry:5000/")
		if !strings.Contains(string(made), "tag "+own+" "+ref+"\npush "+ref+"\n") {
			t.Errorf("%s was not pushed; the engine was called with\n%s", ref, made)
		}
	}
}

func TestForRegistryIsOnlyNamesWithoutContainers(t *testing.T) {
	images, err := ForRegistry(t.Context(), &bytes.Buffer{}, &nodes{embedded: true}, newStage(t), nil, "k3d-devregistry:5000")
	want := deploy.Images{"controller": "k3d-devregistry:5000/05-teapot-manager:not-built", "server": "k3d-devregistry:5000/05-teapot-server:not-built"}
	if err != nil || !maps.Equal(images, want) {
		t.Errorf("got %v, %v, want %v", images, err, want)
	}
}

func TestARegistryThatRefuses(t *testing.T) {
	fakeEngine(t)
	_, err := ForRegistry(t.Context(), &bytes.Buffer{}, &nodes{}, newStage(t), map[string]string{"server": "server"}, "refused.example.com")
	if err == nil || !strings.Contains(err.Error(), "running docker push refused.example.com/05-teapot-server:") || !strings.Contains(err.Error(), "denied") {
		t.Errorf("got %v", err)
	}
}

func TestRegistryPrefix(t *testing.T) {
	for registry, want := range map[string]string{
		"k3d-devregistry:5000":   "k3d-devregistry:5000",
		"localhost:5000/":        "localhost:5000",
		"ghcr.io/me/workbook":    "ghcr.io/me/workbook",
		"127.0.0.1:5000":         "127.0.0.1:5000",
		"me":                     "me",
		"":                       "",
		"https://ghcr.io":        "",
		"ghcr.io//me":            "",
		"ghcr.io/Me":             "",
		"ghcr.io/me:v1":          "",
		"-oops":                  "",
		"two words":              "",
		"k3d-devregistry:5000 x": "",
	} {
		got, err := registryPrefix(registry)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", registry, got, err, want)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for ref, want := range map[string]bool{
		"localhost:5000/a:b": true, "localhost/a": true, "127.0.0.1:5000/a": true, "[::1]:5000/a": true,
		"k3d-devregistry:5000/a": false, "localhosts/a": false, "busybox": false,
	} {
		if got := isLoopback(ref); got != want {
			t.Errorf("%s: got %t", ref, got)
		}
	}
}

// A program that is not the stage's own is this machine's, if it can run alone.
func TestProgramOfThisMachine(t *testing.T) {
	dir, bin := newStage(t), t.TempDir()
	static, err := Binary(t.Context(), dir, "server", "linux", runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(static)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for name, text := range map[string][]byte{"alone": content, "script": []byte("#!/bin/sh\n")} {
		if err := os.WriteFile(filepath.Join(bin, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path, err := program(t.Context(), dir, "alone", runtime.GOARCH)
	if want := filepath.Join(dir, "bin", "linux-"+runtime.GOARCH, "alone"); err != nil || path != want {
		t.Fatalf("got %s, %v, want %s", path, err, want)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the copy has %d bytes, the program %d, error %v", len(got), len(content), err)
	}
	for name, row := range map[string]struct{ program, arch, want string }{
		"no such program":      {"no-such-program", runtime.GOARCH, "this machine has no no-such-program"},
		"of another machine":   {"alone", "s390x", "and the engine's images are for s390x"},
		"not of Linux":         {"script", runtime.GOARCH, "is not for Linux"},
		"with a loader":        {"sh", runtime.GOARCH, "is not static"},
		"of no known engine's": {"alone", "vax", "and the engine's images are for vax"},
	} {
		if name == "with a loader" && runtime.GOOS != "linux" {
			continue
		}
		if _, err := program(t.Context(), dir, row.program, row.arch); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %s", name, err, row.want)
		}
	}
}

// A program that is not there does not keep the targets before it from being built.
func TestFindTarget(t *testing.T) {
	dir := newStage(t)
	for name, want := range map[string]string{
		"server":  "[server] []",
		"manager": "[manager server] [server]",
		"busybox": "[no-such-program] [server manager server]",
		"other":   "the Dockerfile of 05-Teapot has no target other",
	} {
		found, earlier, err := findTarget(dir, name)
		got := strings.Join([]string{list(found.programs), list(earlier)}, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func list(words []string) string { return "[" + strings.Join(words, " ") + "]" }
