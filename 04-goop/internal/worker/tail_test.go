package worker

import (
	"strings"
	"testing"
)

func TestTailKeepsTheEnd(t *testing.T) {
	long := strings.Repeat("0123456789", 1000)
	for name, c := range map[string]struct {
		written []string
		want    string
	}{
		"nothing":               {nil, ""},
		"an empty piece":        {[]string{""}, ""},
		"small pieces":          {[]string{"a", "b", "c\n"}, "abc\n"},
		"one long piece":        {[]string{long}, long[len(long)-MaxOutput:]},
		"a long one, a short":   {[]string{long, "end"}, (long + "end")[len(long)+3-MaxOutput:]},
		"a short one, a long":   {[]string{"begin", long}, long[len(long)-MaxOutput:]},
		"exactly what fits":     {[]string{long[:MaxOutput]}, long[:MaxOutput]},
		"a character cut":       {[]string{"🐄" + strings.Repeat("x", MaxOutput-2)}, strings.Repeat("x", MaxOutput-2)},
		"a character in two":    {[]string{"\xf0\x9f", "\x90\x84"}, "🐄"},
		"bytes that are no end": {[]string{"\x90\x84"}, "\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			tail := &tail{}
			for _, piece := range c.written {
				tail.add([]byte(piece))
			}
			if got := tail.String(); got != c.want {
				t.Errorf("got %d bytes %.40q, want %d bytes %.40q", len(got), got, len(c.want), c.want)
			}
		})
	}
}
