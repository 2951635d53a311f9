package cow

import (
	"fmt"
	"strings"
)

// Visible returns s with everything that a terminal or a browser could obey
// instead of show replaced by something to look at. Newlines and tabs stay.
//
//   - CR LF becomes one newline: it is how some editors end a line;
//   - the other control characters become their Unicode picture (ESC is ␛);
//   - C1 controls, line separators and the characters that reorder text become
//     their code point in brackets (U+202E is [U+202E]);
//   - a byte that is not UTF-8 becomes U+FFFD.
//
// Everything else, quotes and angle brackets too, stays exactly as it was.
func Visible(s string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune('\u2400' + r)
		case r == 0x7f:
			b.WriteRune('\u2421')
		case obeyed(r):
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// obeyed reports whether r is one of the control characters that have no picture.
// A terminal takes U+009B as the start of an escape sequence, just as ESC [.
func obeyed(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f: // C1 controls
	case r == 0x2028 || r == 0x2029: // line and paragraph separator
	case r >= 0x202a && r <= 0x202e: // bidirectional embeddings and overrides
	case r >= 0x2066 && r <= 0x2069: // bidirectional isolates
	default:
		return false
	}
	return true
}
