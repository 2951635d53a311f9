// Package cow draws the cow that says things, for a terminal.
package cow

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Columns is the widest that a line of text in a balloon gets, in terminal
// columns: an emoji and a Chinese character take two of them.
const Columns = 40

const art = `        \   ^__^
         \  (oo)\_______
            (__)\       )\/\
                ||----w |
                ||     ||
`

// The escape sequences of SayInColour, for the parts of the picture.
const (
	frameColour = "\x1b[36m" // cyan
	textColour  = "\x1b[1m"  // bold
	cowColour   = "\x1b[35m" // magenta
	reset       = "\x1b[0m"
)

// Say returns the cow with text in its balloon, ending with a newline. The text
// is made Visible first, so that printing the result is safe.
func Say(text string) string {
	return draw(text, func(_, s string) string { return s })
}

// SayInColour is Say with the escape sequences that colour it on a terminal.
func SayInColour(text string) string {
	return draw(text, func(colour, s string) string { return colour + s + reset })
}

// draw builds the picture and lets paint colour each part of it.
func draw(text string, paint func(colour, s string) string) string {
	lines := wrap(Visible(text), Columns)
	width := 0
	for _, line := range lines {
		width = max(width, uniseg.StringWidth(line))
	}

	var b strings.Builder
	b.WriteString(paint(frameColour, " "+strings.Repeat("_", width+2)) + "\n")
	for i, line := range lines {
		left, right := border(i, len(lines))
		padding := strings.Repeat(" ", width-uniseg.StringWidth(line))
		b.WriteString(paint(frameColour, left) + " " + paint(textColour, line) + padding + " " + paint(frameColour, right) + "\n")
	}
	b.WriteString(paint(frameColour, " "+strings.Repeat("-", width+2)) + "\n")
	for line := range strings.Lines(art) {
		b.WriteString(paint(cowColour, strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// border returns what stands left and right of line i of n in a balloon.
func border(i, n int) (left, right string) {
	switch {
	case n == 1:
		return "<", ">"
	case i == 0:
		return "/", `\`
	case i == n-1:
		return `\`, "/"
	default:
		return "|", "|"
	}
}
