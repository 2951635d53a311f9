package docstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	// typed bounds how long one block of commands may take.
	typed = 10 * time.Minute
	// goesOn bounds how long another terminal may take to show what it is waited for.
	goesOn = 5 * time.Minute
	// ends bounds how long a command may take to end after Ctrl-C.
	ends = time.Minute
)

// reader types what a chapter says into terminals.
type reader struct {
	// run ends when the whole run is to end, and says why.
	run                 context.Context
	repository, cluster string
	// printed is what the last block of commands has printed, errors included.
	printed   string
	terminals map[string]*terminal
	// blocks counts what was typed, failed is the first failure.
	blocks int
	failed string
}

// terminal is one in which something runs that does not end by itself.
type terminal struct {
	cmd  *exec.Cmd
	done chan error
	seen *buffer
}

// commands are what the scripts of this package consist of.
func (r *reader) commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"type": r.typeBlock, "shows": r.shows, "terminal": r.inTerminal,
	}
}

// fail ends the chapter. The message begins with the file and line of the Markdown, and ends with what the other terminals
// show: what went wrong is often there.
func (r *reader) fail(ts *testscript.TestScript, chapter string, line int, format string, args ...any) {
	place := fmt.Sprintf("%s:%d", chapter, line)
	if r.failed == "" {
		r.failed = place
	}
	var message strings.Builder
	fmt.Fprintf(&message, format, args...)
	for _, name := range slices.Sorted(maps.Keys(r.terminals)) {
		fmt.Fprintf(&message, "\nterminal %s shows:\n%s", name, indent(r.terminals[name].seen.String()))
	}
	ts.Fatalf("%s: %s", place, &message)
}

// place reads the two words at the end of each of this package's commands: the chapter's file, and a line of it.
func place(ts *testscript.TestScript, args []string) (rest []string, chapter string, line int) {
	if len(args) < 2 {
		ts.Fatalf("the chapter and a line of it are missing")
	}
	n := len(args) - 2
	line, err := strconv.Atoi(args[n+1])
	ts.Check(err)
	return args[:n], args[n], line
}

// typeBlock is the command "type FILE CHAPTER LINE": the reader's own terminal.
func (r *reader) typeBlock(ts *testscript.TestScript, neg bool, args []string) {
	args, chapter, line := place(ts, args)
	ctx, cancel := context.WithTimeout(r.run, typed)
	defer cancel()
	state := ts.MkAbs(".terminal")
	cmd := r.bash(ctx, ts, state, args[0])
	r.blocks++
	output, err := cmd.CombinedOutput()
	r.printed = string(output)
	ts.Logf("%s", output)
	block := ts.ReadFile(args[0])
	switch {
	case r.run.Err() != nil:
		r.fail(ts, chapter, line, "the run was ended here: %v", context.Cause(r.run))
	case ctx.Err() != nil:
		r.fail(ts, chapter, line, "the block has not ended after %s:\n%s\nit printed:\n%s", typed, indent(block), indent(r.printed))
	case neg && err == nil:
		r.fail(ts, chapter, line, "the block was to end with an error, and did not:\n%s\nit printed:\n%s", indent(block), indent(r.printed))
	case !neg && err != nil:
		failed, command := failedAt(state, block)
		if failed == 0 {
			failed, command = 1, strings.TrimSpace(block)
		}
		r.fail(ts, chapter, line+failed-1, "this was to succeed, and ended with %q:\n%s\nthe block printed:\n%s", err, indent(command), indent(r.printed))
	}
}

// shows is the command "shows FILE CHAPTER LINE": what the chapter shows is what was printed.
func (r *reader) shows(ts *testscript.TestScript, _ bool, args []string) {
	args, chapter, line := place(ts, args)
	shown := ts.ReadFile(args[0])
	err := Match(shown, r.printed)
	if err == nil {
		return
	}
	differs := &Difference{Line: 1}
	errors.As(err, &differs)
	r.fail(ts, chapter, line+differs.Line-1, "%v\nall that the chapter shows:\n%s\nall that was printed:\n%s", err, indent(shown), indent(r.printed))
}

// inTerminal is the command "terminal NAME FILE TEXT CHAPTER LINE": another terminal, until TEXT is seen in it.
func (r *reader) inTerminal(ts *testscript.TestScript, _ bool, args []string) {
	args, chapter, line := place(ts, args)
	name, file, until := args[0], args[1], args[2]
	r.interrupt(ts, name, chapter, line)
	cmd := r.bash(context.WithoutCancel(r.run), ts, ts.MkAbs(".terminal-"+name), file)
	opened := &terminal{cmd: cmd, done: make(chan error, 1), seen: &buffer{}}
	cmd.Stdout, cmd.Stderr = opened.seen, opened.seen
	r.blocks++
	ts.Check(cmd.Start())
	go func() { opened.done <- cmd.Wait() }()
	r.terminals[name] = opened
	expected := fmt.Sprintf("%q was to be seen in terminal %s", until, name)
	for deadline := time.After(goesOn); !opened.shows(until); {
		select {
		case err := <-opened.done:
			opened.done <- err
			// It may have shown the text just before it ended.
			if !opened.shows(until) {
				r.fail(ts, chapter, line, "%s, and it ended before (%s)", expected, ended(err))
			}
		case <-r.run.Done():
			r.fail(ts, chapter, line, "the run was ended here: %v", context.Cause(r.run))
		case <-deadline:
			r.fail(ts, chapter, line, "%s, and was not within %s", expected, goesOn)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (t *terminal) shows(text string) bool { return strings.Contains(t.seen.String(), text) }

func ended(err error) string {
	if err == nil {
		return "without an error"
	}
	return err.Error()
}

// interrupt is Ctrl-C in a terminal that is open.
func (r *reader) interrupt(ts *testscript.TestScript, name, chapter string, line int) {
	open := r.terminals[name]
	if open == nil {
		return
	}
	if err := open.end(); err != nil {
		r.fail(ts, chapter, line, "terminal %s is needed for something else: %v", name, err)
	}
	delete(r.terminals, name)
	ts.Logf("terminal %s:\n%s", name, open.seen)
}

func (t *terminal) end() error {
	group := -t.cmd.Process.Pid
	if err := syscall.Kill(group, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending Ctrl-C: %w", err)
	}
	select {
	case err := <-t.done:
		_ = err // that of Ctrl-C, mostly
		return nil
	case <-time.After(ends):
		_ = syscall.Kill(group, syscall.SIGKILL)
		return fmt.Errorf("it did not end after Ctrl-C within %s", ends)
	}
}

// leave closes all terminals, as the end of a chapter does.
func (r *reader) leave() error {
	var errs []error
	for name, open := range r.terminals {
		if err := open.end(); err != nil {
			errs = append(errs, fmt.Errorf("terminal %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// longest is how many lines a message has of an output: the end is what tells.
const longest = 60

// indent sets a text off from the message around it.
func indent(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var out strings.Builder
	if left := len(lines) - longest; left > 0 {
		fmt.Fprintf(&out, "\t(%d more lines, then)\n", left)
		lines = lines[left:]
	}
	for _, line := range lines {
		out.WriteString("\t" + line + "\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}
