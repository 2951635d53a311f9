package cow

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

func TestSayDrawsTheClassicBalloon(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"one line": {
			text: "Be cautious in your daily affairs.",
			want: ` ____________________________________
< Be cautious in your daily affairs. >
 ------------------------------------
        \   ^__^
         \  (oo)\_______
            (__)\       )\/\
                ||----w |
                ||     ||
`,
		},
		"two lines": {
			text: "Oh my gosh, I am a cow in a container, and I say it twice!",
			want: ` ________________________________________
/ Oh my gosh, I am a cow in a container, \
\ and I say it twice!                    /
 ----------------------------------------
` + art,
		},
		"three lines, the middle one empty, and wide characters": {
			text: "moo\n\n牛 🐄",
			want: ` _______
/ moo   \
|       |
\ 牛 🐄 /
 -------
` + art,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Say(test.text); got != test.want {
				t.Errorf("Say(%q) =\n%swant\n%s", test.text, got, test.want)
			}
		})
	}
}

// Whatever the text, a balloon's lines are all as wide as each other: that is
// what makes it a balloon.
func TestBalloonIsARectangle(t *testing.T) {
	texts := []string{
		"",
		"-- --help; $(reboot) `id` <b>\"'&",
		"tab\tin\tthe\tmiddle",
		"👩‍👩‍👧‍👦 family, 🇨🇭 flag, 👍🏽 thumb, e\u0301 accent, ❤️ heart",
		strings.Repeat("ox", 512),
		strings.Repeat("🐄", 512),
		"\x1b[31mred\x1b[0m \x9b bad \xff bytes \u202etxet",
	}
	for _, text := range texts {
		balloon, _ := strings.CutSuffix(Say(text), art)
		lines := strings.Split(strings.TrimSuffix(balloon, "\n"), "\n")
		last := len(lines) - 1
		for i, line := range lines {
			want := uniseg.StringWidth(lines[1])
			if i == 0 || i == last {
				want-- // the upper and lower edge stop one column short
			}
			if got := uniseg.StringWidth(line); got != want || got > Columns+4 {
				t.Errorf("Say(%q): line %d is %d columns wide, want %d:\n%s", text, i, got, want, balloon)
			}
		}
	}
}

func TestSayInColourAddsNothingButColour(t *testing.T) {
	const text = "two lines\nin <colour>"
	coloured := SayInColour(text)
	if coloured == Say(text) {
		t.Fatal("SayInColour has no colour")
	}
	plain := regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(coloured, "")
	if plain != Say(text) {
		t.Errorf("without its escape sequences SayInColour is\n%swant\n%s", plain, Say(text))
	}
	for line := range strings.Lines(coloured) {
		if !strings.HasSuffix(strings.TrimRight(line, "\n"), reset) {
			t.Errorf("colour leaks out of the line %q", line)
		}
	}
}

func TestFortune(t *testing.T) {
	if len(fortunes) < 50 {
		t.Errorf("there are %d fortunes, want at least 50", len(fortunes))
	}
	seen := map[string]bool{}
	for i := range fortunes {
		fortune := Fortune(func(n int) int {
			if n != len(fortunes) {
				t.Fatalf("pick was offered %d fortunes, want %d", n, len(fortunes))
			}
			return i
		})
		switch {
		case fortune == "" || fortune != strings.TrimSpace(fortune):
			t.Errorf("fortune %d is empty or has spaces around it: %q", i, fortune)
		case fortune != Visible(fortune):
			t.Errorf("fortune %d has a control character: %q", i, fortune)
		case seen[fortune]:
			t.Errorf("fortune %d is there twice: %q", i, fortune)
		}
		seen[fortune] = true
	}
}
