package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileThatCannotBeWrittenStaysAsItIs(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no full disk to write to")
	}
	path := filepath.Join(t.TempDir(), "state")
	if err := errors.Join(WriteFile(path, []byte("old")), os.Symlink("/dev/full", path+".new")); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("new")); err == nil {
		t.Error("a full disk was not reported")
	}
	// To read /dev/full would never end.
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Fatalf("got %v, %v", info, err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "old" {
		t.Errorf("got %q, %v", content, err)
	}
}
