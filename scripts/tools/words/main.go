// Command words reads the files that its standard input names, one a line, and reports words that the Kubernetes
// documentation does not use for what is meant. Its two tables are words.txt, what to say instead, and allowed.txt, where a
// word stays and why. It fails for an entry of allowed.txt that nothing needs any more.
package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed words.txt
var words string

//go:embed allowed.txt
var allowed string

func main() {
	t, err := newTables(words, allowed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	}
	names, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	}
	found, err := t.check(os.DirFS("."), strings.FieldsFunc(string(names), func(r rune) bool { return r == '\n' }))
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	}
	for _, line := range append(found, t.unused()...) {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(found)+len(t.unused()) > 0 {
		os.Exit(1)
	}
}

// word is a line of words.txt.
type word struct {
	pattern *regexp.Regexp
	instead string
}

// exception is a line of allowed.txt. It holds where the path and the line both match.
type exception struct {
	path, line *regexp.Regexp
	entry      string
	used       bool
}

type tables struct {
	words      []word
	exceptions []*exception
}

// newTables reads both tables. Columns are separated by tabs; lines that begin with # are comments.
func newTables(words, allowed string) (*tables, error) {
	t := &tables{}
	for _, columns := range rows(words) {
		if len(columns) != 2 {
			return nil, fmt.Errorf("words.txt: %q: want a pattern and what to say instead", strings.Join(columns, "\t"))
		}
		pattern, err := regexp.Compile("(?i)" + columns[0])
		if err != nil {
			return nil, fmt.Errorf("words.txt: %w", err)
		}
		t.words = append(t.words, word{pattern: pattern, instead: columns[1]})
	}
	for _, columns := range rows(allowed) {
		if len(columns) != 3 || columns[2] == "" {
			return nil, fmt.Errorf("allowed.txt: %q: want a path, a pattern and the reason", strings.Join(columns, "\t"))
		}
		path, err := regexp.Compile("^(?:" + columns[0] + ")")
		if err != nil {
			return nil, fmt.Errorf("allowed.txt: %w", err)
		}
		line, err := regexp.Compile("(?i)" + columns[1])
		if err != nil {
			return nil, fmt.Errorf("allowed.txt: %w", err)
		}
		t.exceptions = append(t.exceptions, &exception{path: path, line: line, entry: strings.Join(columns[:2], " ")})
	}
	return t, nil
}

func rows(table string) (rows [][]string) {
	for line := range strings.Lines(table) {
		line = strings.TrimRight(line, "\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(line, "\t"))
		}
	}
	return rows
}

// check returns one line for each word that stands where it is not allowed. It fails if a file cannot be read.
func (t *tables) check(root fs.FS, files []string) (found []string, err error) {
	for _, file := range files {
		file = filepath.ToSlash(filepath.Clean(file))
		content, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, err
		}
		if generated.Match(content) {
			continue
		}
		scanner := bufio.NewScanner(strings.NewReader(string(content)))
		scanner.Buffer(nil, len(content)+1)
		for number := 1; scanner.Scan(); number++ {
			for _, w := range t.words {
				if text := w.pattern.FindString(scanner.Text()); text != "" && !t.allows(file, scanner.Text(), w) {
					found = append(found, fmt.Sprintf("%s:%d: %q: %s", file, number, text, w.instead))
				}
			}
		}
	}
	return found, nil
}

// generated is how Go marks a file that is not written by hand.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// allows reports whether, of a line's words of one kind, none is left without those that an exception names.
func (t *tables) allows(file, line string, w word) bool {
	for _, e := range t.exceptions {
		if !e.path.MatchString(file) || !e.line.MatchString(line) {
			continue
		}
		rest := e.line.ReplaceAllString(line, "")
		if len(w.pattern.FindAllString(rest, -1)) < len(w.pattern.FindAllString(line, -1)) {
			e.used, line = true, rest
		}
	}
	return !w.pattern.MatchString(line)
}

// unused returns one line for each exception that allowed nothing: what it was for is gone, or has moved.
func (t *tables) unused() (lines []string) {
	for _, e := range t.exceptions {
		if !e.used {
			lines = append(lines, fmt.Sprintf("allowed.txt: nothing needs %q: delete it", e.entry))
		}
	}
	return lines
}
