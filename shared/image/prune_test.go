package image

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Another checkout may be about to load what this one would prune.
func TestNothingIsPrunedWhileAnotherProcessUsesImages(t *testing.T) {
	calls := fakeEngine(t)
	given := func() (pruned bool) {
		t.Helper()
		if err := os.Remove(calls); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if _, err := Given(t.Context(), &bytes.Buffer{}, &nodes{}, "flux:1"); err != nil {
			t.Fatal(err)
		}
		made, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(made), "image rm ")
	}
	if !given() {
		t.Error("no other process uses images, and nothing was pruned")
	}
	// Locks belong to open files, so another one is as good as another process.
	other, err := os.Open(filepath.Join(os.Getenv("HARNESS_CACHE"), "images.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if given() {
		t.Error("images were pruned while another process used some")
	}
	// Nor may that one, as long as this one lasts.
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		t.Error("this process does not say that it uses images")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if !given() {
		t.Error("the other process has ended, and nothing was pruned")
	}
}
