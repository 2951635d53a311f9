package exercise

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"example.com/workbook/shared/exercise/check"
)

// grace is how much longer than its own limit a run gets before it is killed.
const grace = 5 * time.Second

// quiet is how long a run says nothing: after that it says how far it is.
const quiet = 10 * time.Second

// outputLimit bounds what is kept of the reader's output: the end of it.
const outputLimit = 64 << 10

// tail keeps the last bytes that are written to it.
type tail struct {
	mu      sync.Mutex
	content []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.content = append(t.content, p...)
	if len(t.content) > 2*outputLimit {
		t.content = append([]byte(nil), t.content[len(t.content)-outputLimit:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.content[max(0, len(t.content)-outputLimit):])
}

// execution is how a run is started.
type execution struct {
	binary string
	target target
	limit  time.Duration
	env    []string
	// note is called with how far a long run is.
	note func(string)
}

// execute runs one check as a child process, the leader of a process group of its own, which ends with it.
func execute(ctx context.Context, x execution) (Result, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return Result{}, err
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(ctx, x.limit+grace)
	defer cancel()
	output := &tail{}
	cmd := exec.CommandContext(ctx, x.binary, x.target.key)
	cmd.Dir = x.target.dir
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{writer}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second
	cmd.Env = append(append(os.Environ(), x.env...), check.LimitVariable+"="+x.limit.String())
	if err := errors.Join(cmd.Start(), writer.Close()); err != nil {
		return Result{}, fmt.Errorf("starting the check: %w", err)
	}
	lines := make(chan []check.Line, 1)
	go func() { lines <- gather(reader, x.note) }()
	err = cmd.Wait()
	// What the reader's code may have started ends too.
	_ = killGroup(cmd.Process.Pid)
	if err := reader.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return Result{}, err
	}
	result, ended := collect(<-lines)
	result.Output = output.String()
	result.Race = race(result.Output)
	// A goroutine of the reader's may panic when all has been reported. The race detector has an exit status of its own.
	if _, failed := errors.AsType[*exec.ExitError](err); ended && (!failed || result.Race != "") {
		return result, nil
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return Result{}, context.Canceled
	}
	if result.Died == nil {
		result.Died = &Death{}
	}
	*result.Died = death(*result.Died, x.target, result.Output, err)
	return result, nil
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// gather reads the results until no process has the other end open.
func gather(r io.Reader, note func(string)) []check.Line {
	lines := make(chan check.Line)
	go parse(r, lines)
	ticker := time.NewTicker(quiet)
	defer ticker.Stop()
	var all []check.Line
	for {
		select {
		case l, more := <-lines:
			if !more {
				return all
			}
			all = append(all, l)
		case <-ticker.C:
			if text := soFar(all); text != "" {
				note(text)
			}
		}
	}
}

func parse(r io.Reader, lines chan<- check.Line) {
	defer close(lines)
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var l check.Line
		if json.Unmarshal(bytes.TrimSpace(scanner.Bytes()), &l) == nil {
			lines <- l
		}
	}
}

// soFar says how far a run is. It is empty before the first behaviour and after the last. How many come, only the check knows.
func soFar(lines []check.Line) string {
	result, ended := collect(lines)
	if ended || result.Died.Behaviour == "" {
		return ""
	}
	there, missed := 0, 0
	for _, b := range result.Behaviours {
		if b.OK {
			there++
		} else {
			missed++
		}
	}
	return fmt.Sprintf("so far %d there, %d missed; now: %s", there, missed, result.Died.Behaviour)
}

// collect makes a result of the lines, and says whether the run came to its end.
func collect(lines []check.Line) (result Result, ended bool) {
	var current, stack string
	for _, l := range lines {
		switch {
		case l.Begin != "":
			current = l.Begin
		case l.Behaviour != "":
			current = ""
			result.Behaviours = append(result.Behaviours, Behaviour{Name: l.Behaviour, OK: l.OK, Seen: l.Seen, Timeline: l.Timeline})
		case l.Stack != "":
			stack = l.Stack
		case l.End:
			ended = true
		}
	}
	if !ended {
		result.Died = &Death{Behaviour: current, stack: stack}
	}
	return result, ended
}
