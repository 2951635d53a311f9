package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// With these variables the test binary is a worker that kills itself.
const (
	crashDirEnv  = "TEST_WORKER_DIR"
	crashStepEnv = "TEST_WORKER_CRASH" // the name of a step and its occurrence: "start#2"
	crashListEnv = "TEST_WORKER_STEPS" // a file that the steps are written to
	crashCodeEnv = "TEST_WORKER_CODE"  // the exit code of the command
)

const crashRetries = 2

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		os.Exit(crashingWorker(dir))
	}
	os.Exit(m.Run())
}

// crashingWorker runs a worker whose command adds a line to the file runs for each run.
func crashingWorker(dir string) int {
	seen := map[string]int{}
	w := &Worker{
		Command: []string{"sh", "-c", fmt.Sprintf("echo run >>%s/runs; echo some output; exit %s", dir, os.Getenv(crashCodeEnv))},
		Retries: crashRetries, Dir: filepath.Join(dir, "goop"), Termination: filepath.Join(dir, "message"),
		Pause: time.Millisecond, Grace: time.Second, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	w.at = func(step string) {
		seen[step]++
		name := fmt.Sprintf("%s#%d", step, seen[step])
		if path := os.Getenv(crashListEnv); path != "" {
			list, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			if err == nil {
				_, err = fmt.Fprintln(list, name)
			}
			if err := errors.Join(err, list.Close()); err != nil {
				panic(err)
			}
		}
		if name == os.Getenv(crashStepEnv) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if err := w.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runCrashing runs the worker of a directory once, and reports whether it ended by itself.
func runCrashing(t *testing.T, dir, code string, env ...string) (whole bool, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(append(os.Environ(), crashDirEnv+"="+dir, crashCodeEnv+"="+code), env...)
	var text bytes.Buffer
	cmd.Stderr = &text
	err := cmd.Run()
	if err == nil {
		return true, text.String()
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL || ctx.Err() != nil {
		t.Fatalf("the worker ended by itself: %v: %s", err, &text)
	}
	return false, text.String()
}

func crashDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "goop"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// runsOf returns the number of runs. It waits until no command that outlived its worker can add to it.
func runsOf(t *testing.T, dir string) int {
	t.Helper()
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the end of an orphaned process cannot be awaited
	return strings.Count(readFile(t, filepath.Join(dir, "runs")), "run")
}

// Whenever a worker is killed, the next one continues: with no more runs than tries, without a run once there is a
// record, and to a complete record.
func TestCrashAtEveryStep(t *testing.T) {
	for _, code := range []string{"0", "7"} {
		t.Run("the command ends with "+code, func(t *testing.T) {
			steps := stepsOf(t, code)
			if len(steps) < 10 {
				t.Fatalf("only %d steps: %q", len(steps), steps)
			}
			for _, step := range steps {
				t.Run(step, func(t *testing.T) {
					t.Parallel()
					crashAt(t, code, step)
				})
			}
		})
	}
}

// stepsOf returns the steps of a worker that is not killed.
func stepsOf(t *testing.T, code string) []string {
	t.Helper()
	dir := crashDir(t)
	list := filepath.Join(dir, "steps")
	if whole, stderr := runCrashing(t, dir, code, crashListEnv+"="+list); !whole {
		t.Fatal(stderr)
	}
	return strings.Split(strings.TrimSpace(readFile(t, list)), "\n")
}

func crashAt(t *testing.T, code, step string) {
	t.Helper()
	dir := crashDir(t)
	if whole, _ := runCrashing(t, dir, code, crashStepEnv+"="+step); whole {
		t.Fatal("the worker was not killed")
	}
	// The kubelet restarts the container, and the worker is killed at the same step again, if it gets there.
	recorded := readFile(t, filepath.Join(dir, "goop", recordFile)) != ""
	before := runsOf(t, dir)
	runCrashing(t, dir, code, crashStepEnv+"="+step)
	if whole, stderr := runCrashing(t, dir, code); !whole {
		t.Fatal(stderr)
	}
	runs := runsOf(t, dir)
	if runs > 1+crashRetries {
		t.Errorf("%d runs, more than %d", runs, 1+crashRetries)
	}
	if recorded && runs != before {
		t.Errorf("there was a record after %d runs, and then there were %d", before, runs)
	}
	kept, reported := readFile(t, filepath.Join(dir, "goop", recordFile)), readFile(t, filepath.Join(dir, "message"))
	record, err := ParseRecord(reported)
	if err != nil || kept != reported {
		t.Fatalf("the record is %q, the message %q, error %v", kept, reported, err)
	}
	if int(record.Tries) < runs || int(record.Tries) > 1+crashRetries {
		t.Errorf("the record counts %d tries, there were %d runs", record.Tries, runs)
	}
	if fmt.Sprint(record.ExitCode) != code && (record.ExitCode != 137 || record.Tries != 1+crashRetries) {
		t.Errorf("the record is %+v, the command ends with %s", record, code)
	}
	if strings.Contains(step, "record: sync") && !recorded {
		t.Error("a record that was saved was not found")
	}
}

// A container that is killed in each of its tries does not run the command without end.
func TestKilledInEachTry(t *testing.T) {
	dir := crashDir(t)
	for range 1 + crashRetries {
		if whole, _ := runCrashing(t, dir, "0", crashStepEnv+"=started#1"); whole {
			t.Fatal("the worker was not killed")
		}
	}
	whole, stderr := runCrashing(t, dir, "0", crashStepEnv+"=started#1")
	if !whole {
		t.Fatal(stderr)
	}
	// A command outlives its worker by a moment: the last may not have written its line yet.
	runs := runsOf(t, dir)
	for tries := 0; runs < 1+crashRetries && tries < 1000; tries++ {
		runs = runsOf(t, dir)
	}
	if runs != 1+crashRetries {
		t.Errorf("%d runs, want %d", runs, 1+crashRetries)
	}
	record, err := ParseRecord(readFile(t, filepath.Join(dir, "message")))
	if err != nil || record.ExitCode != 137 || record.Tries != 1+crashRetries || !strings.Contains(record.Output, "the container was ended during try 3 of 3") {
		t.Errorf("got %+v, error %v", record, err)
	}
}

func TestPausesGrow(t *testing.T) {
	for tries, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 9: 9 * time.Second, 10: maxPause, 11: maxPause, 1000: maxPause} {
		if got := pauseAfter(tries, DefaultPause); got != want {
			t.Errorf("after try %d: got %s, want %s", tries, got, want)
		}
	}
}
