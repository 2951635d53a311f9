// Package docstest runs what the chapters of docs/ tell their readers to run, and compares what it prints with what the
// chapters show. It also checks what they say of the source code of Kubernetes' libraries.
package docstest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Command is a block of commands of a chapter, with the output that the chapter shows for it.
type Command struct {
	// Line is where the commands begin in the chapter, from 1.
	Line int
	Text string
	// Options are the words after sh in the first line of the block.
	Options Options
	// Shown is what the next block of output shows, which may begin far below, at ShownLine. HasOutput reports whether
	// there is one.
	Shown     string
	ShownLine int
	HasOutput bool
}

// Options say how a block of commands is run.
type Options struct {
	// Kind: it needs containers, and is left out on the embedded cluster.
	Kind bool
	// Fails: its last command has to end with something else than 0.
	Fails bool
	// Terminal is the name of another terminal, in which the commands run until the chapter ends or gives that terminal
	// something else to do.
	Terminal string
	// Until is a text that the other terminal has to show before the chapter goes on.
	Until string
}

// Chapter is a file of docs/ that begins with two digits.
type Chapter struct {
	Name     string
	Commands []Command
	Source   []byte
}

// Chapters reads all chapters of a folder, in order.
func Chapters(dir string) ([]Chapter, error) {
	files, err := fs.Glob(os.DirFS(dir), "[0-9][0-9]-*.md")
	if err != nil {
		return nil, fmt.Errorf("looking for chapters: %w", err)
	}
	chapters := make([]Chapter, 0, len(files))
	for _, file := range files {
		source, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("reading a chapter: %w", err)
		}
		chapter, err := parse(file, source)
		if err != nil {
			return nil, err
		}
		chapters = append(chapters, chapter)
	}
	return chapters, nil
}

// choose returns the chapters whose names match what CHAPTER of make docs-test says: a regular expression.
func choose(chapters []Chapter, wish string) ([]Chapter, error) {
	pattern, err := regexp.Compile(wish)
	if err != nil {
		return nil, fmt.Errorf("CHAPTER=%s: %w", wish, err)
	}
	var chosen []Chapter
	var names []string
	for _, chapter := range chapters {
		names = append(names, chapter.Name)
		if pattern.MatchString(chapter.Name) {
			chosen = append(chosen, chapter)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("CHAPTER=%s: there is no such chapter; there are %s", wish, strings.Join(names, ", "))
	}
	return chosen, nil
}

// markdown knows tables, as GitHub does.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM))

func parse(name string, source []byte) (Chapter, error) {
	chapter := Chapter{Name: strings.TrimSuffix(name, ".md"), Source: source}
	err := ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		block, fenced := node.(*ast.FencedCodeBlock)
		if !fenced || !entering || block.Info == nil {
			return ast.WalkContinue, nil
		}
		return ast.WalkContinue, chapter.add(block)
	})
	return chapter, err
}

// embedded matches what is before the language of a block of code that embedmd writes.
var embedded = regexp.MustCompile("\\[embedmd\\]:#[^\n]*\n```$")

// add takes a block of commands, or of output; all other blocks are only to be read.
func (c *Chapter) add(block *ast.FencedCodeBlock) error {
	language, words, _ := strings.Cut(string(block.Info.Segment.Value(c.Source)), " ")
	line := 1 + bytes.Count(c.Source[:block.Info.Segment.Start], []byte("\n"))
	content := string(block.Lines().Value(c.Source))
	switch language {
	case "sh":
		if embedded.Match(c.Source[:block.Info.Segment.Start]) {
			return fmt.Errorf("%s.md:%d: a script that is shown and not run is a block of text", c.Name, line)
		}
		options, err := parseOptions(words)
		if err != nil {
			return fmt.Errorf("%s.md:%d: %w", c.Name, line, err)
		}
		c.Commands = append(c.Commands, Command{Line: line + 1, Text: content, Options: options})
	case "console":
		last := len(c.Commands) - 1
		if last < 0 || c.Commands[last].HasOutput || c.Commands[last].Options.Terminal != "" {
			return fmt.Errorf("%s.md:%d: output without commands before it: other examples are blocks of text", c.Name, line)
		}
		c.Commands[last].Shown, c.Commands[last].ShownLine, c.Commands[last].HasOutput = content, line+1, true
	case "bash", "shell", "zsh", "shell-session":
		return fmt.Errorf("%s.md:%d: commands are in blocks of sh, and are run", c.Name, line)
	}
	return nil
}

var option = regexp.MustCompile(`^\s*([a-z]+)(?:=("[^"]*"|\S+))?`)

func parseOptions(words string) (Options, error) {
	var options Options
	for strings.TrimSpace(words) != "" {
		found := option.FindStringSubmatch(words)
		if found == nil {
			return options, fmt.Errorf("the options %q cannot be read", words)
		}
		words = words[len(found[0]):]
		value := strings.Trim(found[2], `"`)
		switch found[1] {
		case "kind":
			options.Kind = true
		case "fails":
			options.Fails = true
		case "terminal":
			options.Terminal = value
		case "until":
			options.Until = value
		default:
			return options, fmt.Errorf("the option %q is unknown: kind, fails, terminal=NAME, until=TEXT", found[1])
		}
	}
	if (options.Terminal == "") != (options.Until == "") {
		return options, fmt.Errorf("terminal= and until= go together: it has to be known when the chapter goes on")
	}
	return options, nil
}
