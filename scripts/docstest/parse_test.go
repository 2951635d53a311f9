package docstest

import (
	"strings"
	"testing"
)

const fence = "```"

func TestParse(t *testing.T) {
	t.Parallel()
	chapter, err := parse("01-x.md", []byte(strings.ReplaceAll(`# 01 X

~sh
make cluster
~

text

~console
up
~

~go
not run
~

~sh terminal=operator until="Starting workers"
make run
~

~sh fails kind
false
~
`, "~", fence)))
	if err != nil {
		t.Fatal(err)
	}
	if chapter.Name != "01-x" || len(chapter.Commands) != 3 {
		t.Fatalf("got %+v", chapter)
	}
	first, second, third := chapter.Commands[0], chapter.Commands[1], chapter.Commands[2]
	if first.Line != 4 || first.Text != "make cluster\n" || !first.HasOutput || first.Shown != "up\n" {
		t.Errorf("got %+v", first)
	}
	if second.Options != (Options{Terminal: "operator", Until: "Starting workers"}) {
		t.Errorf("got %+v", second)
	}
	if third.Options != (Options{Fails: true, Kind: true}) {
		t.Errorf("got %+v", third)
	}
	source, leftOut := script(chapter, false)
	if leftOut != 1 || !strings.Contains(string(source), "type 00.sh docs/01-x.md 4\nshows 00.out docs/01-x.md 10\n") ||
		!strings.Contains(string(source), "terminal operator 01.sh 'Starting workers' docs/01-x.md 18\n") {
		t.Errorf("left out %d, got\n%s", leftOut, source)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, err string }{
		"unknown option":          {"~sh later\nx\n~", `01-x.md:1: the option "later" is unknown`},
		"a terminal without text": {"~sh terminal=a\nx\n~", "terminal= and until= go together"},
		"output of nothing":       {"~console\nx\n~", "01-x.md:1: output without commands before it"},
		"two outputs":             {"~sh\nx\n~\n\n~console\nx\n~\n\n~console\ny\n~", "output without commands before it"},
		"a script of a file":      {"[embedmd]:# (x.sh sh)\n~sh\nx\n~", "01-x.md:2: a script that is shown and not run"},
		"another shell":           {"~bash\nx\n~", "commands are in blocks of sh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse("01-x.md", []byte(strings.ReplaceAll(test.text, "~", fence)))
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v", err)
			}
		})
	}
}
