package exercise

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	details = regexp.MustCompile(`(?s)<details>\s*<summary>.*?</summary>(.*?)</details>`)
	space   = regexp.MustCompile(`\s+`)
)

// startTag is the build constraint of a start. The reader's copy is without it.
const startTag = "//go:build start\n"

func oneLine(text string) string { return strings.TrimSpace(space.ReplaceAllString(text, " ")) }

// Task is the README without the hints.
func (e Exercise) Task() (string, error) {
	content, err := os.ReadFile(filepath.Join(e.Dir, "README.md"))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(details.ReplaceAllString(string(content), "")) + "\n", nil
}

// Hints are the folded parts of the README, from vague to plain.
func (e Exercise) Hints() ([]string, error) {
	content, err := os.ReadFile(filepath.Join(e.Dir, "README.md"))
	if err != nil {
		return nil, err
	}
	var hints []string
	for _, match := range details.FindAllStringSubmatch(string(content), -1) {
		hints = append(hints, strings.TrimSpace(match[1])+"\n")
	}
	return hints, nil
}

// File is a file of a start, with its path below the reader's folder.
type File struct {
	Path    string
	Content []byte
}

// Start returns the files that the reader begins with: those of the folder start/, or else exercise.go.
func (e Exercise) Start() ([]File, error) {
	dir := filepath.Join(e.Dir, "start")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		content, err := os.ReadFile(filepath.Join(e.Dir, "exercise.go"))
		if err != nil {
			return nil, err
		}
		return []File{{Path: "exercise.go", Content: withoutTag(content)}}, nil
	}
	return filesIn(dir)
}

// Files returns what a solution consists of, without the text about it.
func (s Solution) Files() ([]File, error) {
	files, err := filesIn(s.Dir)
	return slices.DeleteFunc(files, func(file File) bool { return file.Path == whyFile }), err
}

func filesIn(dir string) ([]File, error) {
	var files []File
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		files = append(files, File{Path: path, Content: withoutTag(content)})
		return err
	})
	return files, err
}

func withoutTag(content []byte) []byte {
	if rest, ok := bytes.CutPrefix(content, []byte(startTag)); ok {
		return bytes.TrimLeft(rest, "\n")
	}
	return content
}
