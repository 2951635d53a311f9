package record

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

func TestReadRejectsInvalidLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ line, want string }{
		"an empty line":               {"\n", `"": a line begins with s, b, c or f and a space`},
		"a remark":                    {"# node a is bad\n", `"# node a is bad": a line begins with s, b, c or f and a space`},
		"a space before":              {" f a 0 0 1\n", `" f a 0 0 1": a line begins with s, b, c or f and a space`},
		"the first letter only":       {"f\n", `"f": after f come a node, a round, an exit code, tries and perhaps an output`},
		"a field too few":             {"f a 0 0\n", `"f a 0 0": after f come a node, a round, an exit code, tries and perhaps an output`},
		"two spaces":                  {"f a  0 0 1\n", `"f a  0 0 1": the round is to be a number from 0 to 31`},
		"a tab":                       {"f\ta 0 0 1\n", `"f\ta 0 0 1": a line begins with s, b, c or f and a space`},
		"line ends of Windows":        {"f a 0 0 1\r\n", `"f a 0 0 1\r": the tries are to be a number`},
		"no node":                     {"f  0 0 1\n", `"f  0 0 1": the second field is to be the name of a node`},
		"a node with a capital":       {"f nodeA 0 0 1\n", `"f nodeA 0 0 1": the second field is to be the name of a node`},
		"a round that is none":        {"f a x 0 1\n", `"f a x 0 1": the round is to be a number from 0 to 31`},
		"a negative round":            {"f a -1 0 1\n", `"f a -1 0 1": the round is to be a number from 0 to 31`},
		"a round too high":            {"f a 32 0 1\n", `"f a 32 0 1": the round is to be a number from 0 to 31`},
		"an exit code that is none":   {"f a 0 ok 1\n", `"f a 0 ok 1": the exit code is to be a number`},
		"an exit code too high":       {"f a 0 2147483648 1\n", `"f a 0 2147483648 1": the exit code is to be a number`},
		"tries that are none":         {"f a 0 0 once\n", `"f a 0 0 once": the tries are to be a number`},
		"a space after":               {"f a 0 0 1 \n", `"f a 0 0 1 ": the output is to be quoted as in Go`},
		"an output without quotes":    {"f a 0 1 1 no room\n", `"f a 0 1 1 no room": the output is to be quoted as in Go`},
		"an output in other quotes":   {"f a 0 1 1 `no room`\n", "\"f a 0 1 1 `no room`\": the output is to be quoted as in Go"},
		"an output with half a quote": {"f a 0 1 1 \"no room\n", `"f a 0 1 1 \"no room": the output is to be quoted as in Go`},
		"something after the output":  {"f a 0 1 1 \"no\" room\n", `"f a 0 1 1 \"no\" room": the output is to be quoted as in Go`},
		"a node that has begun twice": {"b a b\n", `"b a b": the second field is to be the name of a node`},
		"no node that has begun":      {"b\n", `"b": the second field is to be the name of a node`},
		"no time":                     {"s\n", `"s": after s comes a time as in 2026-01-02T15:04:05Z, or -`},
		"a time that is none":         {"s noon\n", `"s noon": after s comes a time as in 2026-01-02T15:04:05Z, or -`},
		"a cleanup without tries":     {"c a 0\n", `"c a 0": after c come a node, an exit code and tries`},
		"a cleanup of no node":        {"c A 0 1\n", `"c A 0 1": the second field is to be the name of a node`},
		"a cleanup that has no code":  {"c a ok 1\n", `"c a ok 1": the exit code is to be a number`},
		"a cleanup tried how often":   {"c a 0 x\n", `"c a 0 x": the tries are to be a number`},
		"a line that was cut":         {"f a 0 0 1", `"f a 0 0 1": the line has no end: its rest may be lost`},
		"a long line": {
			strings.Repeat("é", 50) + "\n", `"` + strings.Repeat("é", 40) + `…": a line begins with s, b, c or f and a space`,
		},
		"a long line, cut within a character": {
			"x" + strings.Repeat("é", 50) + "\n", `"x` + strings.Repeat("é", 39) + `…": a line begins with s, b, c or f and a space`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r, err := Read(map[int]string{0: "b other\n", 1: "b other\nf known 0 0 1\n" + test.line, 2: "?\n"}, 3)
			g.Expect(r.Begun).To(Equal(map[string]bool{"other": true, "known": true}), "what is valid")
			g.Expect(err).To(MatchError("shard 1, line 3: " + test.want))
			g.Expect(utf8.ValidString(err.Error())).To(BeTrue(), "it becomes the message of a condition")
			var lineError *LineError
			g.Expect(errors.As(err, &lineError)).To(BeTrue())
			g.Expect(lineError.Shard).To(Equal(1))
			g.Expect(lineError.Line).To(Equal(3))
			g.Expect(lineError.Text).To(Equal(strings.TrimSuffix(test.line, "\n")), "the whole line")
		})
	}
}

func TestReadMissesAShard(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shards  map[int]string
		missing int
	}{
		"the first":          {map[int]string{1: ""}, 0},
		"one between others": {map[int]string{0: "", 1: "", 3: ""}, 2},
		"a negative number":  {map[int]string{-1: "", 0: ""}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			_, err := Read(test.shards, len(test.shards))
			g.Expect(err).To(MatchError(fmt.Sprintf(`shard %d has no "record", or is missing: what it recorded is not known`, test.missing)))
		})
	}
}

// A user who repairs a record may write lines that the operator would not.
func TestReadAcceptsUnambiguousLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text   string
		expect func(Gomega, *Record)
	}{
		"nothing": {"", func(g Gomega, r *Record) { g.Expect(r.Finished).To(BeEmpty()) }},
		"a worker twice, the earlier counts": {"f a 0 0 1\nf a 0 7 1\n", func(g Gomega, r *Record) {
			g.Expect([]int32{r.Succeeded, r.Failed, r.ExitCode}).To(Equal([]int32{1, 0, 0}))
		}},
		"begun twice":             {"b a\nb a\n", func(g Gomega, r *Record) { g.Expect(r.Begun).To(HaveLen(1)) }},
		"a time of another zone":  {"s 2026-01-02T14:00:00+02:00\n", func(g Gomega, r *Record) { g.Expect(r.Started).To(Equal(noon)) }},
		"a time with fractions":   {"s 2026-01-02T12:00:00.7Z\n", func(g Gomega, r *Record) { g.Expect(r.Started).To(Equal(noon)) }},
		"an output of a success":  {"f a 0 0 1 \"hello\"\n", func(g Gomega, r *Record) { g.Expect(r.Failures).To(BeEmpty()) }},
		"an exit code below zero": {"f a 0 -1 1\n", func(g Gomega, r *Record) { g.Expect(r.Failed).To(Equal(int32(1))) }},
		"an output that is too long": {
			"f a 0 1 1 \"" + strings.Repeat("x", 5000) + "\"\n",
			func(g Gomega, r *Record) { g.Expect(r.Failures[0].Output).To(HaveLen(maxOutput)) },
		},
		"an output that is no UTF-8": {
			"f a 0 1 1 \"\\xff\"\n", func(g Gomega, r *Record) { g.Expect(r.Failures[0].Output).To(Equal("\uFFFD")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := read(t, map[int]string{0: test.text})
			test.expect(g, r)
			g.Expect(r.Changed()).To(BeEmpty())
			r.Begin("next")
			g.Expect(r.Changed()).To(Equal([]Shard{{Text: test.text + "b next\n"}}), "existing lines do not change")
		})
	}
}
