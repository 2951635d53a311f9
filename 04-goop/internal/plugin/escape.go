package plugin

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escaped returns a text that cannot control a terminal. Control characters, those that change the direction of writing,
// and bytes that are not UTF-8 are written as in a Go string. Tabs and line ends stay. JSON keeps its meaning.
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

// controls reports whether a character controls a terminal or the direction of writing.
func controls(r rune) bool {
	return r != '\t' && r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
