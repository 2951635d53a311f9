package plugin

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escaped is a text that a terminal shows and does not obey: control characters, those that change the direction of
// writing, and bytes that are no UTF-8 are written as in a Go string. Tabs and ends of lines stay. In JSON it means
// what it meant before.
func escaped(text string) string {
	if !needsEscape(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case controls(r):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
		text = text[size:]
	}
	return out.String()
}

func needsEscape(text string) bool {
	return strings.ContainsFunc(text, controls) || !utf8.ValidString(text)
}

// controls tells whether a character controls a terminal or the direction of writing.
func controls(r rune) bool {
	return r != '\t' && r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
