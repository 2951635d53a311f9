package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	stage := t.TempDir()
	write(t, stage, "a.go", "one two, two")
	for corpus, want := range map[string]string{
		`[{"name": "x", "file": "a.go", "old": "one"}]`:      "",
		`[{"name": "x", "file": "a.go", "old": "two"}]`:      "x: a.go has what it replaces 2 times, not once",
		`[{"name": "x", "file": "a.go", "old": "three"}]`:    "x: a.go has what it replaces 0 times, not once",
		`[{"name": "x", "file": "gone.go", "old": "three"}]`: "no such file",
		`[`: "reading " + corpusFile,
	} {
		write(t, stage, corpusFile, corpus)
		if _, err := read(stage); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", corpus, err, want)
		}
	}
}

// TestCorpora: each bug of each stage can be put in.
func TestCorpora(t *testing.T) {
	_ = os.Getenv("REPOSITORY_SUM") // so that Go's cache of results sees a change of these files
	files, err := filepath.Glob("../../../*/" + corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := read(strings.TrimSuffix(file, corpusFile)); err != nil {
			t.Error(err)
		}
	}
}

func TestOverlayOf(t *testing.T) {
	stage, temp := t.TempDir(), t.TempDir()
	write(t, stage, "a.go", "one two three")
	path, err := overlayOf(temp, stage, bug{File: "a.go", Old: "two", New: "2"})
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(overlay), filepath.Join(stage, "a.go")) {
		t.Errorf("%s, %v", overlay, err)
	}
	if changed, err := os.ReadFile(filepath.Join(temp, "changed.go")); err != nil || string(changed) != "one 2 three" {
		t.Errorf("%q, %v", changed, err)
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
