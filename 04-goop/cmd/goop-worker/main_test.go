package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/workbook/04-goop/internal/worker"
)

// patience is how long a test waits for what happens within a second, unless the machine has much else to do.
const patience = time.Minute

// program is the path of the worker, built as in the image.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "goop-worker-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "goop-worker")
		build := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-s -w", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, output)
			return 1
		}
		return m.Run()
	}())
}

// place has the files of a worker's pod.
type place struct{ dir, message string }

func newPlace(t *testing.T) place {
	t.Helper()
	dir := t.TempDir()
	return place{dir: dir, message: filepath.Join(dir, "message")}
}

// command returns a worker with short pauses.
func (p place) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	flags := []string{"--dir=" + p.dir, "--termination-log=" + p.message, "--pause=1ms"}
	return exec.CommandContext(t.Context(), program, append(flags, args...)...)
}

func (p place) record(t *testing.T) worker.Record {
	t.Helper()
	text, err := os.ReadFile(p.message)
	if err != nil {
		t.Fatal(err)
	}
	record, err := worker.ParseRecord(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// result is how a worker has ended.
type result struct {
	code           int
	stdout, stderr string
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func TestTheSize(t *testing.T) {
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program has %d KiB", info.Size()>>10)
	if info.Size() > 4<<20 {
		t.Errorf("the program has %d bytes: it is copied into every pod", info.Size())
	}
}

func TestRecords(t *testing.T) {
	for name, c := range map[string]struct {
		command        []string
		retries        int
		stdout, stderr string
		want           worker.Record
	}{
		"a greeting":        {[]string{"echo", "hello"}, 0, "hello\n", "", worker.Record{Tries: 1, Output: "hello\n"}},
		"no newline":        {[]string{"printf", "hello"}, 0, "hello", "", worker.Record{Tries: 1, Output: "hello"}},
		"both outputs":      {[]string{"sh", "-c", "echo out; sleep .1; echo err >&2"}, 0, "out\n", "err\n", worker.Record{Tries: 1, Output: "out\nerr\n"}},
		"binary":            {[]string{"printf", `a\0\377\376b`}, 0, "a\x00\xff\xfeb", "", worker.Record{Tries: 1, Output: "a\x00\ufffdb"}},
		"nothing":           {[]string{"true"}, 3, "", "", worker.Record{Tries: 1}},
		"an empty argument": {[]string{"printf", "%s.", "", "a b", "$HOME"}, 0, ".a b.$HOME.", "", worker.Record{Tries: 1, Output: ".a b.$HOME."}},
		"a failure":         {[]string{"sh", "-c", "exit 3"}, 0, "", "", worker.Record{ExitCode: 3, Tries: 1}},
		"a signal":          {[]string{"sh", "-c", "kill -9 $$"}, 0, "", "", worker.Record{ExitCode: 137, Tries: 1}},
		"an end by SIGTERM": {[]string{"sh", "-c", "kill $$"}, 0, "", "", worker.Record{ExitCode: 143, Tries: 1}},
		"a program's flag":  {[]string{"echo", "--retries", "--"}, 0, "--retries --\n", "", worker.Record{Tries: 1, Output: "--retries --\n"}},
		"standard input":    {[]string{"cat"}, 0, "", "", worker.Record{Tries: 1}},
		"ends with a failure": {
			[]string{"sh", "-c", "printf x; exit 4"}, 2, "xxx",
			"goop-worker: exit code 4 in try 1 of 3; the next is in 1ms\ngoop-worker: exit code 4 in try 2 of 3; the next is in 2ms\n",
			worker.Record{ExitCode: 4, Tries: 3, Output: "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			got := finish(t, p.command(t, append([]string{fmt.Sprintf("--retries=%d", c.retries), "--"}, c.command...)...))
			if want := (result{0, c.stdout, c.stderr}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if record := p.record(t); record != c.want {
				t.Errorf("got %+v, want %+v", record, c.want)
			}
		})
	}
}

// A program that does not exist will not exist for the next try either.
func TestProgramsThatCannotBeRun(t *testing.T) {
	dir := t.TempDir()
	notExecutable, noProgram := filepath.Join(dir, "not-executable"), filepath.Join(dir, "no-program")
	for path, mode := range map[string]os.FileMode{notExecutable: 0o644, noProgram: 0o755} {
		if err := os.WriteFile(path, []byte("words"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		program string
		code    int32
		words   string
	}{
		"none in the PATH": {"no-such-program", 127, "executable file not found in $PATH"},
		"none at the path": {dir + "/none", 127, "no such file or directory"},
		"not executable":   {notExecutable, 126, "permission denied"},
		"a folder":         {dir, 126, "permission denied"},
		"no program":       {noProgram, 126, "exec format error"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			got := finish(t, p.command(t, "--retries=3", "--", c.program))
			record := p.record(t)
			if got.code != 0 || record.ExitCode != c.code || record.Tries != 1 {
				t.Errorf("got %+v, %+v", got, record)
			}
			if !strings.Contains(record.Output, c.words) || got.stderr != record.Output {
				t.Errorf("the record says %q, the log %q; want %q", record.Output, got.stderr, c.words)
			}
		})
	}
}

func TestFailsTwiceThenSucceeds(t *testing.T) {
	p := newPlace(t)
	script := "echo x >>" + p.dir + "/runs; echo run $(wc -l <" + p.dir + "/runs); test $(wc -l <" + p.dir + "/runs) = 3"
	if got := finish(t, p.command(t, "--retries=5", "--", "sh", "-c", script)); got.code != 0 || got.stdout != "run 1\nrun 2\nrun 3\n" {
		t.Errorf("got %+v", got)
	}
	if record := p.record(t); record != (worker.Record{Tries: 3, Output: "run 3\n"}) {
		t.Errorf("got %+v", record)
	}
}

func TestARecordIsRepeated(t *testing.T) {
	p := newPlace(t)
	args := []string{"--", "sh", "-c", "echo ran; exit 5"}
	finish(t, p.command(t, args...))
	first := p.record(t)
	if err := os.Remove(p.message); err != nil {
		t.Fatal(err)
	}
	got := finish(t, p.command(t, args...))
	if got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "does not run again: exit code 5 in try 1; the end of its output was:\nran\n") {
		t.Errorf("got %+v", got)
	}
	if again := p.record(t); again != first || again.ExitCode != 5 {
		t.Errorf("got %+v, before it was %+v", again, first)
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		files map[string]string
		words string
	}{
		"no folder":         {[]string{"--dir=/nonexistent/goop"}, nil, "writing down the tries: open /nonexistent/goop/tries.new: no such file or directory"},
		"read-only folder":  {[]string{"--dir=/proc"}, nil, "writing down the tries: open /proc/tries.new: "},
		"a record of words": {nil, map[string]string{"record": "words"}, "the message is not a worker's record"},
		"tries of words":    {nil, map[string]string{"tries": "words"}, `"words" is no number of tries`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got := finish(t, p.command(t, append(c.flags, "--", "echo", "ran")...))
			if got.code != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "goop-worker: ") || !strings.Contains(got.stderr, c.words) {
				t.Errorf("got %+v, want %q", got, c.words)
			}
			if _, err := os.Stat(p.message); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a termination message was written: %v", err)
			}
		})
	}
	t.Run("no termination message", func(t *testing.T) {
		p := newPlace(t)
		args := []string{"--termination-log=/nonexistent/log", "--", "echo", "ran"}
		if got := finish(t, p.command(t, args...)); got.code != 1 || got.stdout != "ran\n" || !strings.Contains(got.stderr, "reporting the record: ") {
			t.Errorf("got %+v", got)
		}
		// The container is restarted, but the work does not run again.
		if got := finish(t, p.command(t, args...)); got.code != 1 || got.stdout != "" {
			t.Errorf("the second time: got %+v", got)
		}
	})
}

func TestCommandLines(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"nothing":            {nil, 2, "no program is named"},
		"no program":         {[]string{"--retries=1", "--"}, 2, "no program is named"},
		"an empty program":   {[]string{"--", ""}, 2, "no program is named"},
		"unknown flag":       {[]string{"--retry=1", "--", "true"}, 2, "not defined: -retry"},
		"words for a number": {[]string{"--retries=many", "--", "true"}, 2, `invalid value "many"`},
		"negative retries":   {[]string{"--retries=-1", "--", "true"}, 2, "cannot be negative"},
		"install nowhere":    {[]string{"install", "/nonexistent/worker"}, 1, "installing the program: open /nonexistent/worker.new: no such file"},
		"help":               {[]string{"--help"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := finish(t, exec.CommandContext(t.Context(), program, c.args...))
			if got.code != c.code || !strings.Contains(got.stderr, c.stderr) {
				t.Errorf("got %+v", got)
			}
			if help := strings.Contains(got.stdout, "goop-worker install PATH"); help != (name == "help") {
				t.Errorf("got %+v", got)
			}
		})
	}
}
