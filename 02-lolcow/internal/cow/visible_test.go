package cow

import "testing"

func TestVisible(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"plain text":           {"Moo & <b>\"it's\"</b> $(id) `id` 🐄 牛 עברית", "Moo & <b>\"it's\"</b> $(id) `id` 🐄 牛 עברית"},
		"newline and tab":      {"a\n\tb", "a\n\tb"},
		"windows line ends":    {"a\r\nb", "a\nb"},
		"a lone CR":            {"good\rbad", "good␍bad"},
		"escape sequences":     {"\x1b[2J\x1b]0;title\a", "␛[2J␛]0;title␇"},
		"NUL, backspace, DEL":  {"\x00\b\x7f", "␀␈␡"},
		"C1 control":           {"\u009b31m\u0085", "[U+009B]31m[U+0085]"},
		"line separators":      {"\u2028\u2029", "[U+2028][U+2029]"},
		"bidi overrides":       {"\u202etxt.\u202c", "[U+202E]txt.[U+202C]"},
		"bidi isolates":        {"\u2066a\u2069", "[U+2066]a[U+2069]"},
		"bytes outside UTF-8":  {"a\xffb", "a\ufffdb"},
		"joined emoji survive": {"👩‍👧 ❤️", "👩‍👧 ❤️"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Visible(test.text); got != test.want {
				t.Errorf("Visible(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}
