package plugin

import (
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// hostile sets the title of a terminal's window, moves its cursor, and imitates a message of the program.
const hostile = "\x1b]0;owned\a\x1b[2J\u009b2J\x9b2J\r\bgoop: all is well\u202e"

const escapedHostile = `\u001b]0;owned\u0007\u001b[2J\u009b2J\x9b2J\u000d\u0008goop: all is well\u202e`

func TestEscaping(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext, ä€😀\n": "plain\ttext, ä€😀\n",
		hostile:              escapedHostile,
		"\x7f\x00\xff\xe2":   `\u007f\u0000\xff\xe2`,
		"":                   "",
	} {
		if got := escaped(text); got != want {
			t.Errorf("%q becomes %s, not %s", text, got, want)
		}
	}
}

// Messages from the cluster are shown in lines that begin like those of this program. They cannot imitate such a line, on
// a terminal or in the log of a pipeline.
func TestConditionsAreEscaped(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.waits(goop, v1alpha1.ReasonHostAccessNotAllowed, hostile+"\ngoop: all is well")
	})
	r := f.run("run", "--host-root", "rw", "--", "true")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(HavePrefix("goop: rejected: " + strings.ReplaceAll(escapedHostile, `\x9b`, "\ufffd") + "\n  goop: all is well; "))
}

func TestOutputOnATerminalIsEscapedUnlessAsked(t *testing.T) {
	for _, flags := range [][]string{nil, {"--group"}, {"-o", "json"}} {
		for _, raw := range []bool{false, true} {
			t.Run(strings.Join(flags, " ")+map[bool]string{true: " --raw"}[raw], func(t *testing.T) {
				g, f := NewWithT(t), newFake(t)
				f.operator(func(goop string) {
					f.ends(goop, "n1", 0, "\x1b]0;owned\a\u009b2J\x7f and more\n", 0)
					f.finish(f.worker(goop, "n2", 0, func(w http.ResponseWriter, _ *http.Request) {
						_, _ = io.WriteString(w, "no\x1bend")
					}), worker.Record{Tries: 1})
					f.end(goop, 2)
				})
				args := append([]string{"run", "--raw=" + map[bool]string{true: "true", false: "false"}[raw]}, flags...)
				screen, code := onTerminal(t, f, []string{"TERM=dumb"}, func(*process) {}, append(args, "--", "hello")...)
				g.Expect(code).To(Equal(0))
				switch {
				case !raw:
					g.Expect(screen).To(And(ContainSubstring(`\u001b]0;owned\u0007\u009b2J\u007f and more`), ContainSubstring(`no\u001bend`)))
					g.Expect(screen).NotTo(MatchRegexp("[\x1b\a\u009b\x7f]"))
				case len(flags) == 2:
					g.Expect(screen).To(ContainSubstring("\\u001b]0;owned\\u0007\u009b2J\x7f and more"), "JSON escapes some itself")
				default:
					g.Expect(screen).To(And(ContainSubstring("\x1b]0;owned\a\u009b2J\x7f and more"), ContainSubstring("no\x1bend")))
				}
			})
		}
	}
}

// A program that reads the output gets it unchanged.
func TestOutputToAPipeIsNotEscaped(t *testing.T) {
	for _, flags := range [][]string{nil, {"--group"}} {
		g, f := NewWithT(t), newFake(t)
		f.operator(func(goop string) {
			f.ends(goop, "n1", 0, "\x1b[31mred\r\n", 0)
			f.end(goop, 1)
		})
		r := f.run(append(append([]string{"run"}, flags...), "--", "hello")...)
		g.Expect(r.out).To(HaveSuffix("\x1b[31mred\r\n"))
	}
}

// The status of a Goop has output of workers too.
func TestObjectsOnATerminalAreEscaped(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			f.goop("hello", "true")
			f.end("hello", 0, v1alpha1.Failure{Node: "n1", ExitCode: 1, Output: "txt.\u202eexe"})
			screen, code := onTerminal(t, f, nil, func(*process) {}, "ls", "-o", format)
			g.Expect(code).To(Equal(0), screen)
			g.Expect(screen).To(ContainSubstring(`txt.\u202eexe`))
		})
	}
}
