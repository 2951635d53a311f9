package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

func TestProgressOfTwoRunnersIsComplete(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			s := newStore(root) // of a process of its own
			err := s.change(t.Context(), func(p *progress) {
				p.edit(fmt.Sprintf("x%d", n), func(r *record) { r.Done = s.now() })
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	p, err := newStore(root).load()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		if !p.done(fmt.Sprintf("x%d", n)) {
			t.Errorf("exercise x%d is not done", n)
		}
	}
}

func TestProgressThatCannotBeReadIsNotOverwritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"version": 1, "exercises": {`: "move it away",
		`{"version": 9}`:                "format 9",
	} {
		s := newStore(t.TempDir())
		if err := os.Mkdir(s.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.file(), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		err := s.change(t.Context(), func(p *progress) { p.edit("04a", (*record).undo) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("progress %s: the error is %v, expected %q in it", text, err, want)
		}
		if now, _ := os.ReadFile(s.file()); string(now) != text {
			t.Errorf("the file was %s and is %s", text, now)
		}
	}
}

func TestOneRunnerWatchesAtATime(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	release, err := newStore(root).open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newStore(root).open(); !errors.Is(err, errOpen) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("the second runner gets %v, expected the process that holds the lock", err)
	}
	other, err := newStore(t.TempDir()).open()
	if err != nil {
		t.Errorf("a second worktree is locked: %v", err)
	} else {
		other()
	}
	release()
	again, err := newStore(root).open()
	if err != nil {
		t.Fatalf("after the first runner ended: %v", err)
	}
	again()
}
