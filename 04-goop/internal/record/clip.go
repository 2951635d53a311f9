package record

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxOutput is how many bytes of a failure's output are kept, as status.failures[].output says.
	maxOutput = 2 << 10

	// maxQuoted is how many bytes the output may take as JSON. It is large enough for 2 KiB of text with a line end or a
	// quote in each eight bytes, and small enough that MaxFailures outputs leave room in 64 KiB for the rest of a status.
	maxQuoted = maxOutput + maxOutput/8
)

// Clip returns the end of an output: as much as fits into 2 KiB, and into 2.25 KiB as JSON, where a character may take
// six bytes. The result is valid UTF-8, and can be part of a YAML document.
func Clip(output string) string {
	output = printable(output)
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

// printable replaces what is not UTF-8, and the characters that YAML rejects and JSON does not escape: kubectl edit and
// kubectl get -o yaml fail for a Goop that has one of them in its status.
func printable(output string) string {
	return strings.Map(func(char rune) rune {
		if char >= '\u007f' && char <= '\u009f' && char != '\u0085' || char == '\ufffe' || char == '\uffff' {
			return utf8.RuneError
		}
		return char
	}, strings.ToValidUTF8(output, string(utf8.RuneError)))
}

// quotedSize is how many bytes a character takes in JSON as the API server encodes it: it also escapes characters that
// have a meaning in HTML.
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
