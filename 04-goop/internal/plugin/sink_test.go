package plugin

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

func lineOutputTo(b *buffer) output {
	c, n := newConsole(streamsTo(b)), &names{}
	return (&lineSink{console: c, names: n, notices: newNotices(c, n)}).open(place{node: "n1"})
}

// The lines of the output do not depend on the pieces in which it arrives.
func TestLinesAreWhole(t *testing.T) {
	check := func(text []byte, cuts []uint8) bool {
		var screen buffer
		out := lineOutputTo(&screen)
		rest := text
		for _, cut := range cuts {
			n := min(int(cut), len(rest))
			_, _ = out.Write(rest[:n])
			rest = rest[n:]
		}
		_, _ = out.Write(rest)
		_ = out.end(result{})
		var want strings.Builder
		for line := range bytes.Lines(text) {
			fmt.Fprintf(&want, "n1: %s\n", bytes.TrimSuffix(line, []byte("\n")))
		}
		return screen.String() == want.String()
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

func TestALongLineIsShownInPieces(t *testing.T) {
	g := NewWithT(t)
	var screen buffer
	out := lineOutputTo(&screen)
	long := strings.Repeat("ä€😀", 3*maxLine/9) + "\n"
	for rest := []byte(long); len(rest) > 0; {
		n := min(1000, len(rest))
		_, err := out.Write(rest[:n])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(out.(*lineOutput).rest)).To(BeNumerically("<", maxLine))
		rest = rest[n:]
	}
	g.Expect(out.end(result{})).To(Succeed())
	var joined strings.Builder
	for line := range strings.Lines(screen.String()) {
		g.Expect(len(line)).To(BeNumerically("<=", maxLine+len("n1: \n")))
		g.Expect(utf8.ValidString(line)).To(BeTrue())
		joined.WriteString(strings.TrimSuffix(strings.TrimPrefix(line, "n1: "), "\n"))
	}
	g.Expect(joined.String() + "\n").To(Equal(long))
}

// A line that is as long as a piece is one line, wherever its end comes.
func TestALineThatFillsAPiece(t *testing.T) {
	g := NewWithT(t)
	var screen buffer
	out := lineOutputTo(&screen)
	long := strings.Repeat("x", maxLine)
	for _, piece := range []string{long, "\n", long, "y\n"} {
		_, err := out.Write([]byte(piece))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(out.end(result{})).To(Succeed())
	g.Expect(screen.String()).To(Equal("n1: " + long + "\nn1: " + long + "\nn1: y\n"))
}

func TestNamesAreFolded(t *testing.T) {
	for want, all := range map[string][]string{
		"":                  {},
		"n1":                {"n1"},
		"n[1-3,7]":          {"n7", "n2", "n1", "n3"},
		"n[08-09],n[8,10]":  {"n08", "n09", "n8", "n10"},
		"a,b":               {"b", "a"},
		"ip-10-0-[1-2].ec2": {"ip-10-0-1.ec2", "ip-10-0-2.ec2"},
		"n[1-2]/[0-1]":      {"n1/0", "n1/1", "n2/0", "n2/1"},
		"n1,x99999999999999999998,x99999999999999999999": {"n1", "x99999999999999999998", "x99999999999999999999"},
		"n1/[0-1],n2/0": {"n1/0", "n1/1", "n2/0"},
	} {
		if got := joinFolded(all); got != want {
			t.Errorf("%v folds to %s, not to %s", all, got, want)
		}
	}
}

func TestGroupsCollateOutputs(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "Linux\n", 0)
		f.ends(goop, "n2", 0, "Darwin", 0)
		f.ends(goop, "n3", 0, "Linux\n", 0)
		f.ends(goop, "n4", 0, "", 0)
		f.end(goop, 4)
	})
	t.Setenv("TMPDIR", t.TempDir())
	r := f.run("run", "--group", "--", "uname")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.out).To(Equal(`---------------
n[1,3] (2)
---------------
Linux
---------------
n2
---------------
Darwin
---------------
n4
---------------
`))
	g.Expect(os.ReadDir(os.Getenv("TMPDIR"))).To(BeEmpty(), "the temporary file was deleted")
}

// A different exit code is another group, even with the same output or none.
func TestGroupsDistinguishExitCodes(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "", 0)
		f.ends(goop, "n2", 0, "", 0)
		f.ends(goop, "n3", 0, "", 1)
		f.ends(goop, "n4", 0, "", 1)
		f.ends(goop, "n5", 0, "", 2)
		f.terminate(f.worker(goop, "n6", 0, text("")), "no record")
		f.end(goop, 2, v1alpha1.Failure{Node: "n3", ExitCode: 1}, v1alpha1.Failure{Node: "n4", ExitCode: 1},
			v1alpha1.Failure{Node: "n5", ExitCode: 2}, v1alpha1.Failure{Node: "n6", ExitCode: 125})
	})
	r := f.run("run", "--group", "--", "test", "-e", "/etc/passwd")
	g.Expect(r.code).To(Equal(125))
	g.Expect(r.out).To(Equal(`---------------
n[1-2] (2)
---------------
---------------
n[3-4] (2): exit code 1
---------------
---------------
n5: exit code 2
---------------
---------------
n6: exit code not known
---------------
`))
}

// Outputs that differ only after the part that is shown are different.
func TestGroupsClipLongOutputs(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		for node, end := range map[string]string{"n1": "a", "n2": "b", "n3": "a"} {
			f.finish(f.worker(goop, node, 0, text(strings.Repeat("x", maxCaptured)+end)), worker.Record{Tries: 1})
		}
		f.end(goop, 3)
	})
	r := f.run("run", "--group", "--", "uname")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(strings.Count(r.out, "x")).To(Equal(2 * maxCaptured))
	g.Expect(r.out).NotTo(ContainSubstring("a"))
	g.Expect(r.err).To(Equal(`goop: n[1,3] (2): the output continues for 1 bytes, which are not shown: --group shows the first 1048576
goop: n2: the output continues for 1 bytes, which are not shown: --group shows the first 1048576
`))
}

// Without a directory for temporary files the command does not run on any node: its output would be lost, and the work
// cancelled in the middle.
func TestGroupsWithoutATemporaryFolder(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "Linux\n", 0)
		f.end(goop, 1)
	})
	t.Setenv("TMPDIR", "/nowhere")
	r := f.run("run", "--group", "--", "uname")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(ContainSubstring("keeping outputs in a temporary file: open /nowhere/"))
	g.Expect(f.count("create goops")).To(BeZero())
}

func TestJSONForPrograms(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "<a>\n\xff", 0)
		f.finish(f.worker(goop, "n2", 1, nil), worker.Record{ExitCode: 5, Tries: 2, Output: "end"})
		f.end(goop, 1, v1alpha1.Failure{Node: "n2", Round: 1, ExitCode: 5})
	})
	r := f.run("run", "-o", "json", "--", "uname")
	g.Expect(r.code).To(Equal(5))
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	g.Expect(lines).To(HaveLen(3))
	g.Expect(lines[:2]).To(ConsistOf(
		MatchJSON(`{"type":"worker","node":"n1","round":0,"exitCode":0,"tries":1,"output":"<a>\n\ufffd","outputFrom":"log"}`),
		MatchJSON(`{"type":"worker","node":"n2","round":1,"exitCode":5,"tries":2,"output":"end","outputFrom":"record",
			"outputError":"pods not found"}`)))
	g.Expect(lines[2]).To(MatchJSON(`{"type":"summary","goop":"` + f.name() + `","namespace":"test","reason":"WorkersFailed","exitCode":5,
		"desired":2,"succeeded":1,"failed":1}`))
}

func TestJSONOfATimeOut(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "x") })
	})
	r := f.run("run", "-o", "json", "--timeout", "3s", "--", "uname")
	g.Expect(r.code).To(Equal(124))
	g.Expect(r.out).To(MatchJSON(`{"type":"summary","goop":"` + f.name() + `","namespace":"test","reason":"TimedOut","exitCode":124,
		"desired":0,"succeeded":0,"failed":0,"unfinished":[{"node":"n1","round":0}]}`))
}

// If the program is stopped while it reads a log, the output says that the log is incomplete.
func TestJSONOfALogThatWasNotReadToItsEnd(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		for n := range maxStreams + 1 {
			f.finish(f.worker(goop, fmt.Sprintf("n%d", n), 0, hangs), worker.Record{Tries: 1, Output: "record\n"})
		}
		f.worker(goop, "slow", 0, hangs)
	})
	p := f.start("run", "-o", "json", "--", "uname")
	eventually(t, "as many are read as can be", func() bool { return f.most() == maxStreams })
	<-time.After(3 * time.Second) // until it has read what each has begun with: nothing reports that
	p.signal(syscall.SIGTERM)
	g.Expect(p.end()).To(Equal(143))
	const begun, unread = `"output":"begun\n","outputFrom":"log"`, `"output":"record\n","outputFrom":"record"`
	const why = `,"outputError":"its log was not read to the end"}`
	out := p.out.String()
	g.Expect(strings.Count(out, `"exitCode":0,"tries":1,`+begun+why)).To(Equal(maxStreams), out)
	g.Expect(strings.Count(out, `"exitCode":0,"tries":1,`+unread+why)).To(Equal(1), out)
	g.Expect(out).To(ContainSubstring(`"unfinished":[{"node":"slow","round":0}]}`))
}
