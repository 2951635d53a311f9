package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A machine may have npm and no network. Its site has the diagrams' text.
func TestTheSiteIsMadeWithoutANetwork(t *testing.T) {
	bin, site := t.TempDir(), t.TempDir()
	t.Setenv("HARNESS_CACHE", t.TempDir())
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\necho 'npm error code EAI_AGAIN' >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := addMermaid(t.Context(), &out, site); err != nil {
		t.Fatal(err)
	}
	if said := out.String(); !strings.Contains(said, "the diagrams are shown as text") || !strings.Contains(said, "npm") {
		t.Errorf("it said %q", said)
	}
	if script, err := os.ReadFile(filepath.Join(site, "mermaid.min.js")); err != nil || len(script) > 0 {
		t.Errorf("the script is %q, %v", script, err)
	}
}
