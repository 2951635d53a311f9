package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// patience is far more than a change takes to be noticed, also on a busy machine.
const patience = 30 * time.Second

func TestWatchNoticesEachWayToSave(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "work", "04a-first")
	file, other := filepath.Join(dir, "exercise.go"), filepath.Join(dir, "more", "helper.go")
	must(t, files{"exercise.go": []byte("0")}.write(dir))
	changed := watch(t.Context(), dir)
	steps := []struct {
		what string
		do   func()
	}{
		{"written in place", func() { must(t, os.WriteFile(file, []byte("1"), 0o644)) }},
		{"written beside and renamed", func() { must(t, replace(file, "2")) }},
		{"renamed", func() { must(t, os.Rename(file, filepath.Join(dir, "answer.go"))) }},
		{"a file in a new folder", func() {
			must(t, os.MkdirAll(filepath.Dir(other), 0o755))
			must(t, os.WriteFile(other, []byte("1"), 0o644))
		}},
		{"changed there", func() { must(t, os.WriteFile(other, []byte("2"), 0o644)) }},
		{"the folder deleted", func() { must(t, os.RemoveAll(dir)) }},
		{"the folder back", func() { must(t, files{"exercise.go": []byte("3")}.write(dir)) }},
		{"changed after that", func() { must(t, os.WriteFile(file, []byte("4"), 0o644)) }},
	}
	for _, step := range steps {
		step.do()
		select {
		case <-changed:
		case <-time.After(patience):
			t.Fatalf("%s: not noticed", step.what)
		}
		drain(changed)
	}
}

// drain waits until the watch is silent for a while.
func drain(changed <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-time.After(3 * settle):
			return
		}
	}
}

func TestWatchWithoutTheSystem(t *testing.T) {
	t.Parallel()
	w := &watcher{dir: t.TempDir()} // as where the system has no watch left to give
	defer w.close()
	w.follow()
	if !w.wait(t.Context()) {
		t.Error("the folder is not polled")
	}
}

func TestWatchSendsNothingWithoutAChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "exercise.go")
	must(t, os.WriteFile(file, []byte("a"), 0o644))
	changed := watch(t.Context(), dir)
	must(t, os.WriteFile(file+"~", []byte("b"), 0o644))
	must(t, replace(file, "a"))
	select {
	case <-changed:
		t.Error("a file that was saved without a change is checked again")
	case <-time.After(10 * settle):
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// replace writes a file beside another and renames it, as editors do.
func replace(path, text string) error {
	temp := filepath.Join(filepath.Dir(path), ".new")
	return errors.Join(os.WriteFile(temp, []byte(text), 0o644), os.Rename(temp, path))
}
