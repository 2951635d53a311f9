package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MarshalJSON writes the configuration with more escapes than JSON needs. The API server reads an apply as YAML,
// and YAML has no representation of some characters that a command can hold, such as DEL.
func (c *fluxSetupApplyConfiguration) MarshalJSON() ([]byte, error) {
	type plain fluxSetupApplyConfiguration
	text, err := json.Marshal((*plain)(c))
	if err != nil {
		return nil, fmt.Errorf("writing FluxSetup: %w", err)
	}
	return escapeUnprintable(text), nil
}

// escapeUnprintable writes characters that YAML rejects or changes as JSON's \uXXXX. In JSON they occur in strings
// only. Characters below U+0020 are already escaped.
func escapeUnprintable(text []byte) []byte {
	var escaped strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		default:
			escaped.Write(text[:size])
		}
		text = text[size:]
	}
	return []byte(escaped.String())
}
