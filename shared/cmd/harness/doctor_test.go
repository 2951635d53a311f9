package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/workbook/shared/config"
)

// The cache makes an empty program again, so the doctor may not count it.
func TestTheDoctorMissesEmptyPrograms(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("HARNESS_CACHE", cache)
	path := filepath.Join(cache, "binaries", runtime.GOOS+"-"+runtime.GOARCH, "kwok-"+config.Get("KWOK_VERSION"))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for content, missing := range map[string]bool{"": true, "a program": false} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(checkBinaries(t.Context()).cost, "kwok"); got != missing {
			t.Errorf("of %q, kwok is missing: %t", content, got)
		}
	}
}

// A stage's image may hold a program of this machine; where there is none it is pulled, and where it cannot be, the stage
// fails on kind.
func TestTheDoctorMissesTheProgramOfAnImage(t *testing.T) {
	registry := httptest.NewServer(http.NotFoundHandler())
	host := registry.Listener.Addr().String()
	repo := t.TempDir()
	for file, content := range map[string]string{
		"shared/config/harness.env":                   "",
		"05-teapot/config/crd/kustomization.yaml":     "resources: []\n",
		"05-teapot/config/manager/kustomization.yaml": "images:\n- name: brewer\n  newName: " + host + "/brewer\n  newTag: v1\n",
		"05-teapot/Dockerfile":                        "FROM scratch AS brewer\nCOPY bin/linux-${TARGETARCH}/no-such-program /\n",
	} {
		path := filepath.Join(repo, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(repo)
	t.Setenv("PATH", t.TempDir()) // no engine answers
	if f := checkImages(t.Context()); !f.ok || f.has != "05-teapot pulls "+host+"/brewer:v1 from "+host {
		t.Errorf("got %v", f)
	}
	registry.Close()
	f := checkImages(t.Context())
	for _, want := range []string{"05-teapot has no " + host + "/brewer:v1 on kind", "this machine has no no-such-program", host + " does not answer", "have a static brewer in PATH"} {
		if f.ok || !strings.Contains(f.cost, want) {
			t.Errorf("got %v, want it to contain %q", f, want)
		}
	}
}

// Engines list what was pulled by its digest, as the node image is, without its tag.
func TestTheDoctorFindsANodeImageThatWasPulled(t *testing.T) {
	for name, row := range map[string]struct {
		client string
		has    string
	}{
		"pulled":    {`case "$*" in "image inspect"*"` + config.Get("KIND_NODE_IMAGE") + `") ;; "image inspect"*) exit 1 ;; *) echo 'kindest/node:<none>' ;; esac`, config.Get("KIND_NODE_IMAGE")},
		"built":     {`case "$*" in "image inspect"*) exit 1 ;; *) echo harness/node:` + config.Get("KUBERNETES_VERSION") + `-1 ;; esac`, "harness/node:" + config.Get("KUBERNETES_VERSION") + "-1"},
		"no longer": {`case "$*" in "image inspect"*) exit 1 ;; *) echo 'kindest/node:<none>' ;; esac`, ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+row.client+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir)
		if f := checkNodeImage(t.Context()); f.has != row.has || f.ok != (row.has != "") {
			t.Errorf("%s: got %v, want %q", name, f, row.has)
		}
	}
}
