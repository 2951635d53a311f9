//go:build linux

package plugin

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/internal/worker"
)

const (
	manyWorkers = 5000

	// eachWrites is the size of each worker's output: 320 MiB in all.
	eachWrites = 64 << 10

	// maxMemory is the limit of the whole process, in KiB. The program itself takes about 60 MiB of it.
	maxMemory = memoryFactor * 192 << 10

	// longPatience is how long a test waits for the end of a program that prints hundreds of MiB.
	longPatience = 10 * time.Minute
)

// expectMemory asserts the limit of a memory in KiB only if MEASURE is set: on a machine that has much else to do, garbage is
// collected later.
func expectMemory(g Gomega, memory, limit int) {
	g.Expect(memory).To(BeNumerically(">", 0))
	if os.Getenv("MEASURE") != "" {
		g.Expect(memory).To(BeNumerically("<", limit))
	}
}

// manyNodes adds nodes with ended workers, whose output has different lines. No log continues before the maximum number
// of logs is open.
func manyNodes(f *fake, same bool) {
	f.operator(func(goop string) {
		var opened atomic.Int32
		most := make(chan struct{})
		for i := range manyWorkers {
			node := fmt.Sprintf("node-%04d", i)
			line := "of " + node + " " + strings.Repeat("x", 50) + "\n"
			if same {
				line = "of some node " + strings.Repeat("x", 50) + "\n"
			}
			pod := f.worker(goop, node, 0, func(w http.ResponseWriter, _ *http.Request) {
				if opened.Add(1) == maxStreams {
					close(most)
				}
				<-most
				_, _ = io.WriteString(w, strings.Repeat(line, eachWrites/len(line)))
			})
			f.finish(pod, worker.Record{Tries: 1})
		}
		f.end(goop, manyWorkers)
	})
}

// counter counts the lines of each worker without storing them.
type counter struct {
	lines map[string]int
	rest  string
}

func (c *counter) Write(p []byte) (int, error) {
	c.rest += string(p)
	for {
		line, after, whole := strings.Cut(c.rest, "\n")
		if !whole {
			return len(p), nil
		}
		name, text, _ := strings.Cut(line, ": of ")
		if strings.HasPrefix(text, name+" ") {
			c.lines[name]++
		}
		c.rest = after
	}
}

func TestManyWorkersInLines(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	manyNodes(f, false)
	p := f.command("run", "--", "yes")
	lines := &counter{lines: map[string]int{}}
	p.Stdout, p.Stderr = lines, p.err
	began := time.Now()
	g.Expect(p.Start()).To(Succeed())
	peak := p.peakMemory()
	g.Expect(p.endWithin(longPatience)).To(Equal(0), p.err.String())
	memory := peak()
	t.Logf("%d workers, %d MiB of output: %s, %d KiB of memory, at most %d streams at once",
		manyWorkers, manyWorkers*eachWrites>>20, time.Since(began).Round(time.Millisecond), memory, f.most())
	g.Expect(p.err.String()).To(BeEmpty())
	g.Expect(lines.lines).To(HaveLen(manyWorkers))
	for name, n := range lines.lines {
		g.Expect(n).To(Equal(eachWrites/64), name)
	}
	g.Expect(f.most()).To(Equal(maxStreams))
	g.Expect(f.count("get logs")).To(BeNumerically("<", manyWorkers+manyWorkers/10))
	expectMemory(g, memory, maxMemory)
}

func TestManyWorkersInGroups(t *testing.T) {
	for same, groups := range map[bool]int{true: 1, false: manyWorkers} {
		t.Run(fmt.Sprintf("%d groups", groups), func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			manyNodes(f, same)
			p := f.command("run", "--group", "--", "yes")
			p.Env = append(p.Env, "TMPDIR="+t.TempDir())
			rules := &ruleCounter{}
			p.Stdout, p.Stderr = rules, p.err
			g.Expect(p.Start()).To(Succeed())
			peak := p.peakMemory()
			g.Expect(p.endWithin(longPatience)).To(Equal(0), p.err.String())
			memory := peak()
			t.Logf("%d groups: %d KiB of memory, at most %d streams at once", groups, memory, f.most())
			g.Expect(rules.rules).To(Equal(2 * groups))
			if same {
				g.Expect(rules.head).To(ContainSubstring("node-[0000-0999],node-[1000-4999] (5000)"))
			}
			g.Expect(f.most()).To(Equal(maxStreams))
			expectMemory(g, memory, maxMemory)
		})
	}
}

// peakMemory returns a function for the peak memory of the process, in KiB. The value of the system after the end is not
// useful, because it includes the process that started this one.
func (p *process) peakMemory() func() int {
	var watching sync.WaitGroup
	peak, end := 0, make(chan struct{})
	watching.Go(func() {
		for {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
			for line := range strings.Lines(string(text)) {
				var now int
				if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &now); err == nil {
					peak = max(peak, now)
				}
			}
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return func() int {
		close(end)
		watching.Wait()
		return peak
	}
}

// ruleCounter counts the rules above and below headers, and keeps the first few words.
type ruleCounter struct {
	rules int
	head  string
	rest  string
}

func (c *ruleCounter) Write(p []byte) (int, error) {
	if len(c.head) < 200 {
		c.head += string(p)
	}
	c.rest += string(p)
	for {
		line, after, whole := strings.Cut(c.rest, "\n")
		if !whole {
			return len(p), nil
		}
		if line == strings.Repeat("-", 15) {
			c.rules++
		}
		c.rest = after
	}
}

// Commands that hang do not delay the output of others.
func TestManyWorkersThatHang(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		for i := range 100 {
			f.worker(goop, fmt.Sprintf("hangs%d", i), 0, hangs)
		}
		for i := range 100 {
			pod := f.worker(goop, fmt.Sprintf("ends%d", i), 0, text("done\n"))
			f.finish(pod, worker.Record{Tries: 1})
		}
	})
	p := f.start("run", "--", "maybe")
	eventually(t, "the output of all that ended", func() bool { return strings.Count(p.out.String(), ": done\n") == 100 })
	begun := func() int { return strings.Count(p.out.String(), ": begun\n") }
	eventually(t, "the output of as many as are followed", func() bool { return begun() >= maxFollowed })
	p.signal(syscall.SIGINT)
	g.Expect(p.end()).To(Equal(130))
	g.Expect(begun()).To(Equal(maxFollowed))
	g.Expect(f.most()).To(BeNumerically("<=", maxStreams))
	g.Expect(p.err.String()).To(MatchRegexp(`; not finished: hangs\[\d.*\d\]; the Goop`))
}

// Memory is limited, whatever the amount of output and the lengths of its lines.
func TestMuchOutput(t *testing.T) {
	const each = 32 << 20
	for _, flags := range [][]string{nil, {"--group"}, {"-o", "json"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			f.operator(func(goop string) {
				piece := []byte(strings.Repeat("\x01", 1<<20)) // six characters each in JSON
				for i := range maxStreams {
					pod := f.worker(goop, fmt.Sprintf("n%d", i), 0, func(w http.ResponseWriter, _ *http.Request) {
						for range each / len(piece) {
							_, _ = w.Write(piece)
						}
					})
					f.finish(pod, worker.Record{Tries: 1})
				}
				f.end(goop, maxStreams)
			})
			p := f.command(append(append([]string{"run"}, flags...), "--", "yes")...)
			p.Env = append(p.Env, "TMPDIR="+t.TempDir())
			printed := new(byteCounter)
			p.Stdout, p.Stderr = printed, p.err
			g.Expect(p.Start()).To(Succeed())
			peak := p.peakMemory()
			g.Expect(p.endWithin(longPatience)).To(Equal(0), p.err.String())
			memory := peak()
			t.Logf("%d MiB of output: %d KiB of memory, %d MiB printed", maxStreams*each>>20, memory, *printed>>20)
			switch len(flags) {
			case 0:
				g.Expect(int(*printed)).To(BeNumerically(">", maxStreams*each))
			case 1:
				g.Expect(int(*printed)).To(BeNumerically("~", maxCaptured, 1000))
			case 2:
				g.Expect(int(*printed)).To(BeNumerically("~", 6*maxStreams*maxCaptured, 10000))
			}
			expectMemory(g, memory, 2*maxMemory)
		})
	}
}

type byteCounter int

func (c *byteCounter) Write(p []byte) (int, error) {
	*c += byteCounter(len(p))
	return len(p), nil
}
