package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFullDisk(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=256k"); errors.Is(err, syscall.EPERM) {
		t.Skip("only root can make a small file system")
	} else if err != nil {
		t.Fatal(err)
	}
	mounted := root
	t.Cleanup(func() { must(t, syscall.Unmount(mounted, 0)) })
	root = filepath.Join(root, "workbook")
	writeWorkbook(t, root)
	r, _ := runnerIn(t, root)
	e := r.exercises[0]
	save(t, e, startText)
	typed(t, r, "run", "04a")
	before, err := os.ReadFile(r.store.file())
	must(t, err)

	filler := filepath.Join(root, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	code, text := typed(t, r, "run", "04a")
	expect(t, "run", code, exitNotYet, text, "✗ a lost event is repaired", "saving the progress", "no space left on device")
	code, text = typed(t, r, "hint", "04a")
	expect(t, "hint", code, exitDone, text, "vague", "is not remembered", "no space left on device")
	code, text = typed(t, r, "run", "04b")
	expect(t, "the start of another", code, exitCannot, text, "copying the start of 04b", "no space left on device")
	for _, command := range []string{"reset", "adopt"} {
		must(t, overwrite(e.WorkDir(), "mine"))
		code, text = typed(t, r, command, "04a")
		expect(t, command, code, exitCannot, text, "no space left on device", "nothing was changed")
		expectFiles(t, e.WorkDir(), files{"exercise.go": []byte("mine")})
	}
	if now, _ := os.ReadFile(r.store.file()); string(now) != string(before) {
		t.Errorf("the progress was %s and is %s", before, now)
	}

	must(t, os.Remove(filler))
	code, text = typed(t, r, "adopt", "04a")
	expect(t, "adopt with room again", code, exitDone, text, "your files are kept in")
	code, text = typed(t, r, "run", "04a")
	expect(t, "run with room again", code, exitDone, text, "04a is done")
	left, err := filepath.Glob(filepath.Join(root, "*", "*", "work", ".new-*"))
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left over: %s", strings.Join(left, ", "))
	}
}

// overwrite writes into a file that has its block on the disk already.
func overwrite(dir, text string) error {
	file, err := os.OpenFile(filepath.Join(dir, "exercise.go"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Truncate(int64(len(text))), file.Close())
}
