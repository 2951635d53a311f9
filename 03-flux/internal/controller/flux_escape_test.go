package controller

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// characters are all characters of the basic multilingual plane that a string in JSON can contain, and one of a higher
// plane. NUL is left out: no argument can contain it.
func characters() string {
	var all strings.Builder
	for r := rune(1); r <= 0xffff; r++ {
		if utf8.ValidRune(r) {
			all.WriteRune(r)
		}
	}
	return all.String() + "\U0001F42E"
}

func TestEscapeUnprintable(t *testing.T) {
	for given, want := range map[string]string{
		`{"a":"plain é 日本"}`:         `{"a":"plain é 日本"}`,
		"{\"a\":\"\x7f\u0085\"}":     `{"a":"\u007f\u0085"}`,
		"{\"a\":\"\ufeff\\u0001\"}":  `{"a":"\ufeff\u0001"}`,
		"{\"a\":\"\ufffd\u2028\\\"}": `{"a":"` + "\ufffd" + `\u2028\"}`,
	} {
		if got := string(escapeUnprintable([]byte(given))); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}

	text, err := json.Marshal(characters())
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(escapeUnprintable(text), &back); err != nil || back != characters() {
		t.Errorf("the escaped text cannot be decoded: %v", err)
	}
}

func TestEveryCharacterOfACommandArrives(t *testing.T) {
	w := newFluxTestEnv(t)
	// An argument has at most 16,384 characters.
	command := []string{"program"}
	for rest := []rune(characters()); len(rest) > 0; {
		n := min(len(rest), 16_000)
		command = append(command, string(rest[:n]))
		rest = rest[n:]
	}
	w.create(func(spec *v1alpha1.FluxSpec) { spec.Command = command })
	w.Expect(w.setup().Spec.Command).To(Equal(command))
}
