package record

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxOutput is how many bytes of a failure's output are kept, as status.failures[].output says.
	maxOutput = 2 << 10

	// maxQuoted is how many bytes it may take as JSON. So many that 2 KiB of text fit, with a line end or a quote
	// in each eight bytes; so few that MaxFailures of them leave room in 64 KiB for all else in a status.
	maxQuoted = maxOutput + maxOutput/8
)

// Clip returns the end of an output: as much as fits into 2 KiB, and into 2.25 KiB as JSON, where a character may take
// six bytes. It is valid UTF-8.
func Clip(output string) string {
	output = strings.ToValidUTF8(output, string(utf8.RuneError))
	begin, quoted := len(output), 0
	for begin > 0 {
		last, size := utf8.DecodeLastRuneInString(output[:begin])
		quoted += quotedSize(last)
		if quoted > maxQuoted || len(output)-begin+size > maxOutput {
			break
		}
		begin -= size
	}
	return output[begin:]
}

// quotedSize is how many bytes a character takes in JSON as the API server writes it, with what means something to a
// browser escaped.
func quotedSize(char rune) int {
	switch char {
	case '"', '\\', '\n', '\r', '\t':
		return 2
	case '<', '>', '&', '\u2028', '\u2029':
		return 6
	}
	if char < ' ' {
		return 6
	}
	return utf8.RuneLen(char)
}
