package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

// terminal is the program in a terminal of its own.
type terminal struct {
	t    *testing.T
	root string
	cmd  *exec.Cmd
	tty  *os.File

	lock   sync.Mutex
	output bytes.Buffer
	ended  chan struct{}
}

func openTerminal(t *testing.T, root string, env ...string) *terminal {
	t.Helper()
	cmd := program(t, root)
	cmd.Env = append(cmd.Env, env...)
	return inTerminal(t, root, cmd)
}

func inTerminal(t *testing.T, root string, cmd *exec.Cmd) *terminal {
	t.Helper()
	term := &terminal{t: t, root: root, cmd: cmd, ended: make(chan struct{})}
	tty, err := pty.StartWithSize(term.cmd, &pty.Winsize{Cols: 80, Rows: 24})
	must(t, err)
	term.tty = tty
	t.Cleanup(func() { _ = tty.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := tty.Read(buffer)
			term.lock.Lock()
			term.output.Write(buffer[:n])
			term.lock.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = term.cmd.Wait()
		close(term.ended)
	}()
	return term
}

func program(t *testing.T, root string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "LEARN_SIMULATED=1", "TERM=xterm-256color", "NO_COLOR=", "COLORTERM=")
	return cmd
}

func (term *terminal) shown() string {
	term.lock.Lock()
	defer term.lock.Unlock()
	return term.output.String()
}

func (term *terminal) until(want string) {
	term.t.Helper()
	within(term.t, func() error {
		if !strings.Contains(ansi.Strip(term.shown()), want) {
			return fmt.Errorf("expected %q in %q", want, term.shown())
		}
		return nil
	})
}

// within waits until there is no error any more.
func within(t *testing.T, check func() error) {
	t.Helper()
	limit := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// end asserts that the program ends by itself with an exit code, stopped its API servers, and left no process.
func (term *terminal) end(code int) {
	term.t.Helper()
	select {
	case <-term.ended:
	case <-time.After(patience):
		term.t.Fatalf("the program does not end; it showed %q", term.shown())
	}
	if got := term.cmd.ProcessState.ExitCode(); got != code {
		term.t.Errorf("the exit code is %d, expected %d; it showed %q", got, code, term.shown())
	}
	nothingLeft(term.t, term.root)
}

func nothingLeft(t *testing.T, root string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, "closed")); err != nil {
		t.Errorf("the API servers were not stopped: %v", err)
	}
	var pid int
	if text, err := os.ReadFile(filepath.Join(root, "child.pid")); err == nil {
		_, _ = fmt.Sscan(string(text), &pid)
	}
	if pid != 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		t.Errorf("process %d of the check is still there", pid)
	}
	release, err := newStore(root).open()
	if err != nil {
		t.Errorf("the next runner cannot begin: %v", err)
		return
	}
	release()
}

// slowWorkbook has a first exercise whose check does not end by itself.
func slowWorkbook(t *testing.T) string {
	t.Helper()
	root := workbook(t)
	must(t, files{"exercise.go": []byte("slow")}.write(filepath.Join(root, "01-informers/exercises/work/04a-first")))
	return root
}

func TestTerminalIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, workbook(t))
	term.until("a lost event is repaired")
	_, err := io.WriteString(term.tty, "q")
	must(t, err)
	term.end(exitDone)
	if text := term.shown(); !strings.Contains(text, "\x1b[?1049h") || strings.LastIndex(text, "\x1b[?1049l") < strings.LastIndex(text, "\x1b[?1049h") {
		t.Errorf("the alternate screen was not left: %q", text)
	}
	term.until("0 of 3 done. make learn goes on with 04a first.")
}

func TestTerminalOpensTheExerciseThatIsTyped(t *testing.T) {
	t.Parallel()
	root := workbook(t)
	term := inTerminal(t, root, program(t, root, "05a"))
	term.until("05a third: the task of 05a-third")
	term.until("a lost event is repaired")
	must(t, files{"exercise.go": []byte(solutionText)}.write(filepath.Join(root, "01-informers/exercises/work/05a-third")))
	term.until("n goes on to 04a")
	_, err := io.WriteString(term.tty, "q")
	must(t, err)
	term.end(exitDone)
	term.until("1 of 3 done. make learn goes on with 04a first.")
	if strings.Contains(ansi.Strip(term.shown()), "04a first:") {
		t.Errorf("another exercise was opened: %q", term.shown())
	}
}

func TestCtrlCDuringACheck(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, slowWorkbook(t))
	term.until("starting an API server")
	_, err := io.WriteString(term.tty, "\x03")
	must(t, err)
	term.end(exitDone)
}

func TestCtrlCAtAnyMoment(t *testing.T) {
	t.Parallel()
	for delay := time.Duration(0); delay < 400*time.Millisecond; delay += 40 * time.Millisecond {
		term := openTerminal(t, slowWorkbook(t))
		time.Sleep(delay) // the moments are what is tested
		// Before the screen is there, the terminal makes a signal of it; then it is a key. One of the two can fall between.
		within(t, func() error {
			_, _ = io.WriteString(term.tty, "\x03")
			select {
			case <-term.ended:
				return nil
			case <-time.After(100 * time.Millisecond):
				return errors.New("the program does not end")
			}
		})
		if code := term.cmd.ProcessState.ExitCode(); code > exitCannot {
			t.Errorf("after %s: the exit code is %d", delay, code)
		}
		if strings.Contains(term.shown(), "1049h") { // otherwise it ended before it began
			nothingLeft(t, term.root)
		}
	}
}

func TestSignalsEndTheProgram(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		term := openTerminal(t, slowWorkbook(t))
		term.until("starting an API server")
		must(t, term.cmd.Process.Signal(signal))
		term.end(exitCannot)
	}
}

func TestTerminalIsClosed(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, slowWorkbook(t))
	term.until("starting an API server")
	must(t, term.tty.Close())
	term.end(exitCannot)
}

func TestTwoRunners(t *testing.T) {
	t.Parallel()
	root := workbook(t)
	term := openTerminal(t, root)
	term.until("a lost event is repaired")
	second := openTerminal(t, root)
	second.until(fmt.Sprintf("already open in this repository, in process %d", term.cmd.Process.Pid))
	<-second.ended
	if code := second.cmd.ProcessState.ExitCode(); code != exitCannot {
		t.Errorf("the exit code of the second is %d", code)
	}
	// A command works beside it, and the screen follows.
	out, err := program(t, root, "adopt", "04a").CombinedOutput()
	if err != nil {
		t.Fatalf("adopt beside an open screen: %v\n%s", err, out)
	}
	term.until("04a is done")
	must(t, os.Remove(filepath.Join(root, "closed"))) // by the command
	_, err = io.WriteString(term.tty, "q")
	must(t, err)
	term.end(exitDone)
}

func TestNoColor(t *testing.T) {
	t.Parallel()
	for env, colours := range map[string]bool{"NO_COLOR=": true, "NO_COLOR=1": false} {
		term := openTerminal(t, workbook(t), env)
		term.until("a lost event is repaired")
		_, err := io.WriteString(term.tty, "q")
		must(t, err)
		term.end(exitDone)
		// 3x and 9x are the foreground colours.
		if found := strings.Contains(term.shown(), ";31m") || strings.Contains(term.shown(), "[31"); found != colours {
			t.Errorf("%s: colours %t, expected %t: %q", env, found, colours, term.shown())
		}
	}
}

func TestPipe(t *testing.T) {
	t.Parallel()
	root := workbook(t)
	out, err := program(t, root).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitNotYet {
		t.Errorf("the error is %v", err)
	}
	if text := string(out); strings.Contains(text, "\x1b") || !strings.Contains(text, "✗ a lost event is repaired") {
		t.Errorf("the output is %q", text)
	}
	// A reader of the pipe that goes away does not end the program before its API servers.
	must(t, os.Remove(filepath.Join(root, "closed")))
	cmd := program(t, root, "run", "04a")
	read, write, err := os.Pipe()
	must(t, err)
	cmd.Stdout = write
	must(t, read.Close())
	_ = cmd.Run()
	must(t, write.Close())
	nothingLeft(t, root)
}
