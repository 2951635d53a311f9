package cow

import (
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	const family = "👩‍👩‍👧‍👦" // one character to a reader, seven code points, two columns
	tests := map[string]struct {
		text  string
		width int
		want  []string
	}{
		"empty":                           {"", 5, []string{""}},
		"fits exactly":                    {"ab cd", 5, []string{"ab cd"}},
		"breaks between words":            {"ab cd e", 5, []string{"ab cd", "e"}},
		"newlines stay":                   {"a\n\nb\n", 5, []string{"a", "", "b", ""}},
		"spaces inside stay":              {"a  b", 5, []string{"a  b"}},
		"indentation stays":               {"  a", 5, []string{"  a"}},
		"spaces at the break go":          {"abcd   e", 5, []string{"abcd", "e"}},
		"spaces at the end go":            {"ab   ", 5, []string{"ab"}},
		"only spaces":                     {"       ", 5, []string{""}},
		"indentation too wide goes":       {"        a", 5, []string{"a"}},
		"a long word is cut":              {"abcdefghijkl", 5, []string{"abcde", "fghij", "kl"}},
		"a long word after a short":       {"x abcdefg y", 5, []string{"x", "abcde", "fg y"}},
		"chinese is two wide":             {"牛牛牛", 5, []string{"牛牛", "牛"}},
		"emoji are two wide":              {"🐄🐄 🐄", 5, []string{"🐄🐄", "🐄"}},
		"a family is not torn apart":      {family + family + family, 5, []string{family + family, family}},
		"an accent stays on its letter":   {"aaaae\u0301b", 5, []string{"aaaae\u0301", "b"}},
		"a flag is one character":         {"a🇨🇭🇨🇭🇨🇭", 5, []string{"a🇨🇭🇨🇭", "🇨🇭"}},
		"tabs go to the next stop":        {"a\tb\tc", 20, []string{"a       b       c"}},
		"tabs count columns, not bytes":   {"牛\tb", 20, []string{"牛      b"}},
		"a character wider than the line": {"牛牛", 1, []string{"牛", "牛"}},
		"a leading dash is only a dash":   {"-rf --help", 5, []string{"-rf", "--hel", "p"}},
		"line breaks are kept as written": {"one\ntwo three", 9, []string{"one", "two three"}},
		"a no-break space does not break": {"a b\u00a0c", 3, []string{"a", "b\u00a0c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := wrap(test.text, test.width); !slices.Equal(got, test.want) {
				t.Errorf("wrap(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
			}
		})
	}
}

// A text without spaces loses nothing, whatever is in it.
func FuzzWrapLosesNothing(f *testing.F) {
	f.Add("🐄e\u0301牛", 3)
	f.Add("abc", 1)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < 1 || width > 100 || strings.ContainsAny(text, " \t\n") {
			t.Skip("only words, and widths that a balloon can have")
		}
		if got := strings.Join(wrap(text, width), ""); got != text {
			t.Errorf("wrap(%q, %d) joined is %q", text, width, got)
		}
	})
}
