package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLayKeepsACopy(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, kept := filepath.Join(top, "work"), filepath.Join(top, "kept", "04a")
	mine := files{"exercise.go": []byte("mine"), "more/helper.go": []byte("mine too")}
	if err := mine.write(dir); err != nil {
		t.Fatal(err)
	}
	hidden := filepath.Join(dir, ".git")
	if err := os.WriteFile(hidden, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(dir) // as a terminal whose working directory it is
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	start := files{"exercise.go": []byte("start")}
	for n, want := range []string{kept, "", kept + "-2"} {
		got, err := start.lay(dir, kept)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("the copy is in %q, expected %q", got, want)
		}
		if n == 1 {
			save := files{"exercise.go": []byte("mine again")}
			if err := save.write(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	expectFiles(t, kept, mine)
	expectFiles(t, kept+"-2", files{"exercise.go": []byte("mine again")})
	expectFiles(t, dir, start)
	if _, err := os.Stat(hidden); err != nil {
		t.Errorf("a hidden file is not the runner's to remove: %v", err)
	}
	before, _ := folder.Stat()
	if now, _ := os.Stat(dir); !os.SameFile(before, now) {
		t.Error("the folder is another one than before: a terminal that is open there sees the old one")
	}
}

func expectFiles(t *testing.T, dir string, want files) {
	t.Helper()
	got, err := readFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !got.same(want) {
		t.Errorf("%s has %q, expected %q", dir, got, want)
	}
}

func TestLayChangesNothingIfItCannotKeepACopy(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, kept := filepath.Join(top, "work"), filepath.Join(top, "kept")
	if err := os.WriteFile(kept, nil, 0o644); err != nil { // a file where the folder has to be
		t.Fatal(err)
	}
	mine := files{"exercise.go": []byte("mine")}
	if err := mine.write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := (files{"exercise.go": []byte("start")}).lay(dir, filepath.Join(kept, "04a")); err == nil {
		t.Error("no error")
	}
	expectFiles(t, dir, mine)
}

func TestDigestIsOfTheReadersFilesOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if digest(dir) != "" || digest(filepath.Join(dir, "none")) != "" {
		t.Error("a folder without files has a digest")
	}
	write := func(name, text string) string {
		t.Helper()
		if err := (files{name: []byte(text)}).write(dir); err != nil {
			t.Fatal(err)
		}
		return digest(dir)
	}
	first := write("exercise.go", "a")
	for _, name := range []string{".exercise.go.swp", "exercise.go~", "4913", "bin/tool", ".git/HEAD"} {
		if write(name, "x") != first {
			t.Errorf("%s changes the digest", name)
		}
	}
	if write("exercise.go", "b") == first || write("exercise.go", "a") != first {
		t.Error("the digest does not follow the content")
	}
	if write("empty.go", "") == first {
		t.Error("a new file does not change the digest")
	}
}
