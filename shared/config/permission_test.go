package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplainNamesWhatToGiveBack(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	mine := t.TempDir()
	theirs := filepath.Join(mine, "cache of theirs")
	file := filepath.Join(theirs, "locks", "x")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{theirs, filepath.Dir(file)} {
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	err := fmt.Errorf("locking: %w", &fs.PathError{Op: "open", Path: file, Err: fs.ErrPermission})
	if got := Explain(err).Error(); !strings.Contains(got, "chown -R \"$(id -u)\" '"+theirs+"'") {
		t.Errorf("got %q", got)
	}
	if !errors.Is(Explain(err), fs.ErrPermission) {
		t.Error("the error itself is lost")
	}
	for _, other := range []error{
		errors.New("else"), &fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist},
		&fs.PathError{Op: "open", Path: filepath.Join(mine, "x"), Err: fs.ErrPermission},
	} {
		if got := Explain(other); got.Error() != other.Error() {
			t.Errorf("%v became %v", other, got)
		}
	}
}

// Each module's tests run in a folder of their own.
func TestTheCacheIsOneFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HARNESS_CACHE", "cache")
	if dir, err := CacheDir(); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("got %q, %v, want an error that asks for an absolute path", dir, err)
	}
	want := filepath.Join(t.TempDir(), "cache")
	t.Setenv("HARNESS_CACHE", want)
	if dir, err := CacheDir(); err != nil || dir != want {
		t.Errorf("got %q, %v, want %q", dir, err, want)
	}
}
