//go:build unix

package plugin

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

func TestSignalsCancelTheWork(t *testing.T) {
	for sent, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
		t.Run(sent.String(), func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			f.operator(func(goop string) { f.worker(goop, "n1", 0, hangs) })
			p := f.start("run", "--", "sleep")
			eventually(t, "output", func() bool { return p.out.String() == "n1: begun\n" })
			p.signal(sent)
			g.Expect(p.end()).To(Equal(code))
			g.Expect(p.err.String()).To(Equal("goop: interrupted; not finished: n1; the Goop " + f.name() + " is deleted, which ends its workers\n"))
			g.Expect(f.all()).To(BeEmpty())
		})
	}
}

// These signals would kill a program that is not written in Go, and the Goop would be left behind.
func TestSignalsThatEndNothing(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) { f.worker(goop, "n1", 0, hangs) })
	p := f.start("run", "--", "sleep")
	eventually(t, "output", func() bool { return p.out.String() == "n1: begun\n" })
	for _, signal := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH} {
		p.signal(signal)
	}
	<-time.After(200 * time.Millisecond)
	p.signal(syscall.SIGTERM)
	g.Expect(p.end()).To(Equal(143))
	g.Expect(f.all()).To(BeEmpty())
}

// SIGHUP is ignored under nohup, SIGINT in a job that a script's shell has put into the background: Ctrl-C is not meant for it.
func TestSignalsThatAreIgnoredFromTheBeginning(t *testing.T) {
	for name, ignored := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT} {
		g, f := NewWithT(t), newFake(t)
		f.operator(func(goop string) { f.worker(goop, "n1", 0, hangs) })
		p := f.command("run", "--", "sleep")
		p.Path, p.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" ` + name + `; exec "$0" "$@"`, p.Path}, p.Args[1:]...)
		p.Stdout, p.Stderr = p.out, p.err
		g.Expect(p.Start()).To(Succeed())
		eventually(t, "output", func() bool { return p.out.String() == "n1: begun\n" })
		p.signal(ignored)
		<-time.After(200 * time.Millisecond)
		p.signal(syscall.SIGTERM)
		g.Expect(p.end()).To(Equal(143), name)
	}
}

func TestASignalWhileTheGoopIsCreatedLeavesNone(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	var p *process
	signalled := make(chan struct{})
	f.slow.delay("POST", func() { <-signalled })
	p = f.start("run", "--", "sleep")
	eventually(t, "the request", func() bool { return f.slow.began.Load() })
	p.signal(os.Interrupt)
	<-time.After(200 * time.Millisecond)
	close(signalled)
	g.Expect(p.end()).To(Equal(130))
	g.Expect(f.all()).To(BeEmpty())
	g.Expect(f.changes()).To(Equal(2), "it was created, and deleted")
}

func TestASecondSignalLeavesAtOnce(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) { f.worker(goop, "n1", 0, hangs) })
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	f.slow.delay("DELETE", func() { <-forever })
	p := f.start("run", "--", "sleep")
	eventually(t, "output", func() bool { return p.out.String() != "" })
	p.signal(os.Interrupt)
	eventually(t, "the request", func() bool { return f.slow.began.Load() })
	p.signal(os.Interrupt)
	g.Expect(p.end()).To(Equal(130))
	g.Expect(p.err.String()).To(ContainSubstring("goop: left at once; the Goop " + f.name() + " may still be there: kubectl goop cancel " + f.name() + " -n test --kubeconfig " + f.kubeconfig + "\n"))
}

// GNU timeout signals the program and its process group; a closed terminal the program and its shell's jobs.
func TestSignalsThatComeTwiceAtOnceAreOne(t *testing.T) {
	for name, pair := range map[string][2]syscall.Signal{
		"the same twice": {syscall.SIGTERM, syscall.SIGTERM},
		"two":            {syscall.SIGTERM, syscall.SIGHUP},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			f.operator(func(goop string) { f.worker(goop, "n1", 0, hangs) })
			second := make(chan struct{})
			f.slow.delay("DELETE", func() { <-second })
			p := f.start("run", "--", "sleep")
			eventually(t, "output", func() bool { return p.out.String() != "" })
			// The program is not awaited between the two: on a busy machine that may take longer than oneSignal. But a signal
			// that follows the same one without a pause is not delivered.
			p.signal(pair[0])
			<-time.After(50 * time.Millisecond)
			p.signal(pair[1])
			eventually(t, "the request", func() bool { return f.slow.began.Load() })
			<-time.After(100 * time.Millisecond)
			close(second)
			g.Expect(p.end()).To(Equal(143))
			g.Expect(p.err.String()).NotTo(ContainSubstring("left at once"))
			g.Expect(f.all()).To(BeEmpty())
		})
	}
}

// A signal that comes later is a second one.
func TestASecondSignalAfterAWhileLeavesAtOnce(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) { f.worker(goop, "n1", 0, hangs) })
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	f.slow.delay("DELETE", func() { <-forever })
	p := f.start("run", "--", "sleep")
	eventually(t, "output", func() bool { return p.out.String() != "" })
	p.signal(syscall.SIGTERM)
	eventually(t, "the request", func() bool { return f.slow.began.Load() })
	<-time.After(oneSignal + 100*time.Millisecond)
	p.signal(syscall.SIGTERM)
	g.Expect(p.end()).To(Equal(143))
	g.Expect(p.err.String()).To(ContainSubstring("goop: left at once; "))
}

// A reader that does not read does not keep the user from cancelling.
func TestASignalCancelsThoughTheOutputIsNotRead(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, strings.Repeat("much ", 1000)+"\n")
			}
		})
	})
	p := f.command("run", "--", "yes")
	reader, err := p.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	p.Stderr = p.err
	g.Expect(p.Start()).To(Succeed())
	_, err = bufio.NewReaderSize(reader, 16).ReadString(' ')
	g.Expect(err).NotTo(HaveOccurred())
	<-time.After(200 * time.Millisecond) // until the pipe is full
	p.signal(os.Interrupt)
	g.Expect(p.end()).To(Equal(130))
	g.Expect(f.all()).To(BeEmpty())
}

// As in kubectl goop run … 2>&1 | less.
func TestSignalsCancelThoughTheNoticesAreNotRead(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	p := f.command("run", "--", "sleep")
	reader, writer, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	defer reader.Close()
	defer writer.Close()
	g.Expect(writer.SetWriteDeadline(time.Now().Add(time.Second))).To(Succeed())
	_, err = writer.Write(make([]byte, 2<<20))
	g.Expect(err).To(MatchError(os.ErrDeadlineExceeded), "the pipe is full")
	p.Stdout, p.Stderr = p.out, writer
	f.operator(func(goop string) { f.waits(goop, v1alpha1.ReasonNoEligibleNodes, "there is none") })
	g.Expect(p.Start()).To(Succeed())
	eventually(t, "the watch", func() bool { return f.count("watch goops") > 0 && f.name() != "" })
	<-time.After(500 * time.Millisecond) // until the notice waits for the reader
	p.signal(os.Interrupt)
	eventually(t, "the deletion", func() bool { return len(f.all()) == 0 })
	p.signal(os.Interrupt)
	g.Expect(p.end()).To(Equal(130))
}

// As in kubectl goop run … | head -n 1.
func TestAReaderThatExitsCancelsTheWork(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "much\n")
				w.(http.Flusher).Flush()
			}
		})
	})
	p := f.command("run", "--", "yes")
	reader, writer, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	p.Stdout, p.Stderr = writer, p.err
	g.Expect(p.Start()).To(Succeed())
	writer.Close()
	line, err := bufio.NewReader(reader).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(Equal("n1: much\n"))
	reader.Close()
	g.Expect(p.end()).To(Equal(1))
	g.Expect(p.err.String()).To(ContainSubstring("broken pipe"))
	g.Expect(f.all()).To(BeEmpty())
}

// onTerminal runs the program with a terminal as its output, and returns the output.
func onTerminal(t *testing.T, f *fake, env []string, during func(p *process), args ...string) (screen string, code int) {
	t.Helper()
	p := f.command(args...)
	p.Env = append(p.Env, env...)
	terminal, err := pty.StartWithSize(p.Cmd, &pty.Winsize{Rows: 24, Cols: 60})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	read := make(chan struct{})
	go func() {
		// The read ends with an error when the last process has closed the terminal.
		_, _ = io.Copy(p.out, terminal)
		close(read)
	}()
	during(p)
	code = p.end()
	<-read
	return p.out.String(), code
}

func TestProgressOnATerminal(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	pods, speak := make(chan string, 1), make(chan struct{})
	f.operator(func(goop string) {
		f.update(goop, func(goop *v1alpha1.Goop) {
			goop.Status = v1alpha1.GoopStatus{ObservedGeneration: 1, Desired: 4, Running: 1, Succeeded: 1, Failed: 2}
		})
		pods <- f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			<-speak
			_, _ = io.WriteString(w, "hello\n")
		})
	})
	began := time.Now()
	screen, code := onTerminal(t, f, nil, func(p *process) {
		// A busy machine leaves out seconds.
		progress := regexp.MustCompile(`of 4, ([2-9]|\d\d+)s`)
		eventually(t, "a second of progress", func() bool { return progress.MatchString(p.out.String()) })
		close(speak)
		eventually(t, "output", func() bool { return strings.Contains(p.out.String(), "hello") })
		f.finish(<-pods, worker.Record{Tries: 1})
		f.end(f.name(), 1)
	}, "run", "--", "hello")
	took := time.Since(began)
	g.Expect(code).To(Equal(0))
	g.Expect(screen).To(ContainSubstring("\r\x1b[K3 done, 1 running, \x1b[31m2 failed\x1b[0m of 4, "))
	g.Expect(screen).To(MatchRegexp(`\r\x1b\[K\x1b\[3[1-6]mn1:\x1b\[0m hello\r\n`), "the line is erased before output")
	g.Expect(strings.LastIndex(screen, "\x1b[K")).To(BeNumerically(">", strings.LastIndex(screen, " of 4, ")), "the line is erased at the end")
	g.Expect(strings.Count(screen, " of 4, ")).To(BeNumerically("<=", 5*took.Seconds()+1))
}

func TestNoColoursWhereTheyAreDisabled(t *testing.T) {
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			f.operator(func(goop string) {
				f.ends(goop, "n1", 0, "hello\n", 0)
				<-time.After(500 * time.Millisecond)
				f.end(goop, 1)
			})
			screen, code := onTerminal(t, f, []string{env}, func(*process) {}, "run", "--", "hello")
			g.Expect(code).To(Equal(0))
			g.Expect(screen).To(ContainSubstring("n1: hello\r\n"))
			g.Expect(screen).NotTo(MatchRegexp(`\x1b\[[0-9]*m`))
			if env == "TERM=dumb" {
				g.Expect(screen).NotTo(ContainSubstring("\x1b"))
			}
		})
	}
}
