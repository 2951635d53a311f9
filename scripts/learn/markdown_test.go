package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestMarkdownIsReadable(t *testing.T) {
	t.Parallel()
	r := &runner{root: "/workbook"}
	text := `Write the loop
of a controller.

- The first item is
  long.
1. Another one.

## Heading
See [the chapter](../../../docs/09-workqueue.md#the-loop), [below](#x) or [Go](https://go.dev).

` + "```go\nqueue.Get()\n\n// [a](b)\n```" + `
**The check** counts.
`
	var got []string
	for _, line := range r.markdown(text, "/workbook/01-informers/exercises/09a-the-loop") {
		got = append(got, ansi.Strip(line))
	}
	want := []string{
		"Write the loop of a controller.", "",
		"- The first item is long.", "1. Another one.", "",
		"Heading",
		"See the chapter (docs/09-workqueue.md), below or Go (https://go.dev).", "",
		"    queue.Get()", "    ", "    // [a](b)",
		"The check counts.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWrapKeepsTheIndentation(t *testing.T) {
	t.Parallel()
	lines := []string{"    " + strings.Repeat("word ", 40), "- " + strings.Repeat("word ", 20), strings.Repeat("x", 100), bad.Render(strings.Repeat("red ", 30))}
	parts := wrap(lines, 40)
	for i, part := range parts {
		plain := ansi.Strip(part)
		if ansi.StringWidth(part) > 40 {
			t.Errorf("%q is wider than 40", plain)
		}
		switch {
		case i < 6 && !strings.HasPrefix(plain, "    word"):
			t.Errorf("%q lost its indentation", plain)
		case strings.Contains(plain, "word") && !strings.HasPrefix(plain, "- word") && !strings.HasPrefix(plain, "  "):
			t.Errorf("%q is not below the text of its item", plain)
		case strings.Contains(plain, "red") && !strings.HasPrefix(part, "\x1b["):
			t.Errorf("%q lost its colour", part)
		}
	}
}
