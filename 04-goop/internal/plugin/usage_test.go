package plugin

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// An invalid command line is rejected before anything is created or deleted, and the error says what is valid.
func TestInvalidCommandLines(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.goop("there", "true")
	f.operator(func(goop string) { f.end(goop, 0) })
	before := f.changes()
	long63, long253 := strings.Repeat("x", 63), strings.Repeat("x", 253)
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no worker", []string{"run", "--count", "0", "--", "true"}, "--count: must be at least 1; without it there is a worker on each node"},
		{"less than none", []string{"run", "--count", "-1", "--", "true"}, "--count: must not be negative"},
		{"too many to be a number", []string{"run", "--count", "99999999999", "--", "true"}, "value out of range"},
		{"no nodes, as of a variable that is not set", []string{"run", "--nodes", "", "--", "true"}, "--nodes: must not be empty; without it the command runs on all nodes"},
		{"a key with two values", []string{"run", "--nodes", "a=b,a=c", "--", "true"}, "--nodes: a is given twice; a node has one value of each label"},
		{"a key twice", []string{"run", "--nodes", "a=b, a =b", "--", "true"}, "--nodes: a is given twice"},
		{"a comma too many", []string{"run", "--nodes", "a=b,", "--", "true"}, "--nodes: must be KEY=VALUE"},
		{"a label without a value", []string{"run", "--nodes", "a", "--", "true"}, "--nodes: must be KEY=VALUE"},
		{"a value that is too long", []string{"run", "--nodes", "a=" + long63 + "x", "--", "true"}, "must be no more than 63"},
		{"a prefix that is too long", []string{"run", "--nodes", long253 + "x/a=b", "--", "true"}, "must be no more than 253"},
		{"no command", []string{"run", "--"}, "requires at least 1 arg"},
		{"an empty command", []string{"run", "--", ""}, "the command is empty: name a program after --"},
		{"an argument that is no UTF-8", []string{"run", "--", "cat", "f\xfcr"}, `"f\xfcr" is not valid UTF-8: a Goop would contain another argument`},
		{"an empty command with arguments", []string{"run", "", "-x"}, "the command is empty"},
		{"no name", []string{"logs", ""}, `"" is not a valid name of a Goop`},
		{"a name with a slash", []string{"wait", "../there"}, `"../there" is not a valid name of a Goop`},
		{"another kind", []string{"cancel", "there", "pod/there"}, `"pod/there" is not a valid name of a Goop`},
		{"a name that is too long", []string{"logs", long253 + "x"}, "must be no more than 253"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			r := f.run(c.args...)
			g.Expect(r.code).To(Equal(2), r.err)
			g.Expect(r.err).To(And(HavePrefix("error: "), ContainSubstring(c.want)))
		})
	}
	g.Expect(f.changes()).To(Equal(before))
}

func TestCommandLinesAtTheirLimits(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) { f.end(goop, 0) })
	long63 := strings.Repeat("x", 63)
	prefix253 := strings.Repeat(long63+".", 3) + strings.Repeat("x", 61)
	for _, args := range [][]string{
		{"run", "--count", "1", "--", "true"},
		{"run", "--nodes", "a=" + long63, "--", "true"},
		{"run", "--nodes", prefix253 + "/" + long63 + "=", "--", "true"},
		{"run", "--", "true", ""},
	} {
		r := f.run(args...)
		g.Expect(r.code).To(Equal(0), "%q: %s", args, r.err)
	}
	for _, name := range []string{"x", long63, prefix253} {
		g.Expect(f.run("wait", name)).To(Equal(ran{1, "", "error: goops not found\n"}))
	}
}

// The other commands and kubectl accept the names that ls -o name prints.
func TestNamesAsLsPrintsThem(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.end(f.goop("done", "true"), 0)
	name := strings.TrimSpace(f.run("ls", "-o", "name").out)
	g.Expect(f.run("wait", name).code).To(Equal(0))
	g.Expect(f.run("logs", name).code).To(Equal(0))
	g.Expect(f.run("cancel", name)).To(Equal(ran{0, name + " deleted\n", ""}))
	g.Expect(f.all()).To(BeEmpty())
}
