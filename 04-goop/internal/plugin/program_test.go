package plugin

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// With asProgram the test binary is the program, like cmd/kubectl-goop, for tests with real signals and terminals.
const asProgram = "KUBECTL_GOOP_TEST_PROGRAM"

// patience is how long a test waits for an expected event. Only a busy machine needs more than a moment of it.
const patience = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, Signals()))
	}
	for _, number := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(number) {
			// As under nohup. Programs that the tests start do not inherit that from a process that is notified.
			signal.Notify(make(chan os.Signal, 1), number)
		}
	}
	code := m.Run()
	stopping.Lock()
	stopServer()
	os.Exit(code)
}

// ran is the result of an execution of the program.
type ran struct {
	code     int
	out, err string
}

// run executes the program within the test.
func (f *fake) run(args ...string) ran {
	f.t.Helper()
	return runProgram(f.t, f.kubeconfig, args...)
}

func runProgram(t *testing.T, kubeconfig string, args ...string) ran {
	t.Helper()
	return beginProgram(kubeconfig, args...).end(t)
}

// running is an execution of the program within the test.
type running struct {
	args     []string
	out, err buffer
	signals  chan os.Signal
	done     chan int
}

// begin executes the program within the test, which reads its output meanwhile and sends it signals.
func (f *fake) begin(args ...string) *running { return beginProgram(f.kubeconfig, args...) }

func beginProgram(kubeconfig string, args ...string) *running {
	r := &running{args: args, signals: make(chan os.Signal, 2), done: make(chan int, 1)}
	go func() {
		if args[0] == "__complete" {
			args = append([]string{args[0], args[1], "--kubeconfig", kubeconfig}, args[2:]...)
		} else {
			args = append([]string{args[0], "--kubeconfig", kubeconfig}, args[1:]...)
		}
		r.done <- Main(args,
			genericiooptions.IOStreams{In: strings.NewReader(""), Out: &r.out, ErrOut: &r.err}, r.signals)
	}()
	return r
}

// end waits for the end of the program.
func (r *running) end(t *testing.T) ran {
	t.Helper()
	select {
	case code := <-r.done:
		return ran{code, r.out.String(), r.err.String()}
	case <-time.After(patience):
		t.Fatalf("kubectl goop %v does not end; it wrote:\n%s\nand:\n%s", r.args, r.out.String(), r.err.String())
		return ran{}
	}
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.String()
}

// process is the program as a process of its own.
type process struct {
	*exec.Cmd
	t        *testing.T
	out, err *buffer
}

func (f *fake) command(args ...string) *process {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), os.Args[0], append([]string{args[0], "--kubeconfig", f.kubeconfig}, args[1:]...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "NO_COLOR=", "TERM=xterm")
	return &process{Cmd: cmd, t: f.t, out: &buffer{}, err: &buffer{}}
}

// start runs the process with its output in buffers.
func (f *fake) start(args ...string) *process {
	f.t.Helper()
	p := f.command(args...)
	p.Stdout, p.Stderr = p.out, p.err
	if err := p.Start(); err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the end of the process, and returns the exit code.
func (p *process) end() int {
	p.t.Helper()
	return p.endWithin(patience)
}

func (p *process) endWithin(limit time.Duration) int {
	p.t.Helper()
	timer := time.AfterFunc(limit, func() { _ = p.Process.Kill() })
	defer timer.Stop()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, io.ErrClosedPipe) {
		p.t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.After(patience); !so(); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatal("never: " + what)
		}
	}
}
