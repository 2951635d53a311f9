package elsewhere

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What tar takes for an escape or for an option is the name of a file like any other.
func TestCopyTreeCopiesAFileOfAnyName(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "scripts/copy-tree.sh", "scripts/files.sh")
	names := []string{`back\table.md`, "-dash.md", "two words.md", "Kühe.md"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := run(t, dir, nil, "git", "init", "--quiet"); err != nil {
		t.Fatal(err, output)
	}
	copied := filepath.Join(t.TempDir(), "a copy")
	if output, err := run(t, dir, nil, "scripts/copy-tree.sh", ".", copied); err != nil || output != "" {
		t.Errorf("got %v: %s", err, output)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(copied, name)); err != nil {
			t.Error(err)
		}
	}
}

// halfTar is a tar that cannot read a file.
const halfTar = `#!/bin/sh
case "$*" in *-x*) cat >/dev/null ;; *) echo 'tar: x: Cannot open' >&2; exit 2 ;; esac
`

// A check of a copy that lacks a file must not be content.
func TestCopyTreeSaysWhatItCannotCopy(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	copyTo(t, dir, "scripts/copy-tree.sh", "scripts/files.sh")
	output, err := run(t, dir, nil, "git", "init", "--quiet")
	if err := errors.Join(err, os.WriteFile(filepath.Join(bin, "tar"), []byte(halfTar), 0o700)); err != nil {
		t.Fatal(err, output)
	}
	output, err = run(t, dir, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, "scripts/copy-tree.sh", ".", filepath.Join(t.TempDir(), "x"))
	if err == nil || !strings.Contains(output, "Cannot open") {
		t.Errorf("got %v: %s", err, output)
	}
}
