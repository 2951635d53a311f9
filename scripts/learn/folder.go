package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// files are the contents of a folder by path, with slashes, relative to the folder.
type files map[string][]byte

// ours reports whether a file or folder is the reader's work: what an editor keeps beside it, what git keeps and what
// make builds is not.
func ours(name string) bool {
	return !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && name != "bin" && name != "4913"
}

// readFolder reads the reader's work in a folder. A folder that does not exist is empty.
func readFolder(dir string) (files, error) {
	out := files{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) { // it was deleted meanwhile
				return nil
			}
			return err
		}
		if path != dir && !ours(entry.Name()) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		out[filepath.ToSlash(relative)] = text
		return nil
	})
	return out, err
}

// digest tells two states of the work in a folder apart. It is the empty string where there is no file to read.
func digest(dir string) string {
	content, err := readFolder(dir)
	if err != nil || len(content) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(content)) {
		fmt.Fprintf(sum, "%q %d\n", name, len(content[name]))
		_, _ = sum.Write(content[name])
	}
	return string(sum.Sum(nil))
}

// same reports whether two folders have the same files.
func (f files) same(other files) bool {
	return maps.EqualFunc(f, other, bytes.Equal)
}

// write writes the files into a folder, each as a whole. All are written beside their places before the first is moved
// there: on a full disk nothing is replaced.
func (f files) write(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	names := slices.Sorted(maps.Keys(f))
	for _, name := range names {
		path := filepath.Join(temp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f[name], 0o644); err != nil {
			return err
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(temp, filepath.FromSlash(name)), path); err != nil {
			return err
		}
	}
	return nil
}

// lay makes a folder hold exactly these files, as far as it is the reader's work. What is there is copied to a folder
// below kept first, and the path of the copy is returned; it is empty where there was nothing to lose. The files are
// replaced in place: a terminal or an editor that is open there sees the new ones.
func (f files) lay(dir, kept string) (string, error) {
	before, err := readFolder(dir)
	if err != nil {
		return "", fmt.Errorf("reading your files in %s: %w", dir, err)
	}
	if before.same(f) {
		return "", nil
	}
	copied := ""
	if len(before) > 0 {
		if copied, err = freeName(kept); err != nil {
			return "", fmt.Errorf("keeping a copy of your files: %w; nothing was changed", err)
		}
		if err := before.write(copied); err != nil {
			_ = os.RemoveAll(copied)
			return "", fmt.Errorf("keeping a copy of your files in %s: %w; nothing was changed", copied, err)
		}
	}
	if err := f.write(dir); err != nil {
		return copied, fmt.Errorf("writing %s: %w", dir, err)
	}
	for name := range before {
		if _, stays := f[name]; stays {
			continue
		}
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return copied, fmt.Errorf("removing %s: %w", name, err)
		}
	}
	return copied, nil
}

// freeName is the path, or the path with a number behind it, where nothing is yet.
func freeName(path string) (string, error) {
	for n, name := 2, path; ; n++ {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", path, n)
	}
}
