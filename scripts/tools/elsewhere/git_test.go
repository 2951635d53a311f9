package elsewhere

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Git for Windows sets core.autocrlf, and a folder that it has cloned is also used from Linux: "/bin/sh^M: bad interpreter".
func TestACloneHasScriptsThatAShellTakes(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, ".gitattributes", "scripts/stage.sh")
	for _, words := range [][]string{
		{"git", "init", "--quiet"}, {"git", "add", "."},
		{"git", "-c", "core.autocrlf=true", "checkout-index", "--all", "--prefix=clone/"},
	} {
		if output, err := run(t, dir, nil, words...); err != nil {
			t.Fatalf("%q: %v: %s", words, err, output)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "clone", "scripts", "stage.sh"))
	if err != nil || strings.Contains(string(content), "\r") {
		t.Errorf("%v, %.20q, want lines that end with a line feed alone", err, content)
	}
}

// A hook of git has GIT_DIR set, which counts more than the folder: a test that makes a repository of its own would stage its
// files in the reader's, and delete all others from the index.
func TestTheRepositoryOfAHookDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "scripts/harness.mk", "scripts/files.sh")
	for file, content := range map[string]string{
		".gitignore": "ignored\n", "folder/file": "", "folder/ignored": "",
		"Makefile": "HARNESS = .\nvariables:\n\t@env\ninclude scripts/harness.mk\n",
	} {
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := run(t, dir, nil, "git", "init", "--quiet"); err != nil {
		t.Fatalf("git init: %v: %s", err, output)
	}
	git := filepath.Join(dir, ".git")
	hook := []string{"GIT_CEILING_DIRECTORIES=", "GIT_DIR=" + git, "GIT_INDEX_FILE=" + filepath.Join(git, "index.lock")}
	if output, err := run(t, filepath.Join(dir, "folder"), hook, "../scripts/files.sh"); err != nil || output != "file\n" {
		t.Errorf("files.sh: %v: got %q, want the file that is not ignored", err, output)
	}
	output, err := run(t, dir, hook, "make", "variables")
	if err != nil || strings.Contains(output, "GIT_DIR=") || strings.Contains(output, "GIT_INDEX_FILE=") {
		t.Errorf("make: %v: the variables of the hook are set:\n%s", err, output)
	}
}
