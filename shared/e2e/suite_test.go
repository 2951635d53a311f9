package e2e

import "testing"

func TestFileName(t *testing.T) {
	for text, want := range map[string]string{
		"keeps its port":           "keeps-its-port",
		"50% of ../../etc/passwd!": "50--of-------etc-passwd",
		"":                         "",
		"Grüße":                    "Gr--e",
		"a name of more than sixty characters, as specs like to have them": "a-name-of-more-than-sixty-characters--as-specs-like-to-have",
	} {
		if got := fileName(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
