package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// Where a worker keeps its state and reports its record, as the operator lays out its pods.
const (
	DefaultDir         = "/goop"
	DefaultTermination = "/dev/termination-log"
)

const (
	// DefaultPause is the pause before the second try; each further one is longer by as much, up to maxPause.
	DefaultPause = time.Second

	maxPause = 10 * time.Second

	// DefaultGrace is how long a command that was told to end may take: less than the ten seconds of its pod.
	DefaultGrace = 8 * time.Second
)

// Worker runs a command until it has ended with 0, or has been tried often enough.
type Worker struct {
	// Command is the program and its arguments.
	Command []string
	// Retries is how often the command is tried again.
	Retries int
	// Dir is a folder that outlives the container, not the pod.
	Dir string
	// Termination is the file that the kubelet reads when the container has ended.
	Termination string
	// Pause is the pause before the second try.
	Pause time.Duration
	// Grace is how long the command may take to end when a signal told it to. After that it is killed.
	Grace time.Duration
	// Stdout and Stderr take what the command writes, as it is; Stderr also what the worker itself has to say. When
	// one of them is gone, the command does not notice.
	Stdout, Stderr io.Writer
	// Signals are those sent to the worker. Each is passed on to the command and ends the work: there are no
	// further tries, and no record.
	Signals <-chan os.Signal

	// at is called at each step, so that a test can end the process there.
	at func(step string)
}

// Stopped says that a signal ended the work before it was over.
type Stopped struct{ Signal syscall.Signal }

func (s *Stopped) Error() string { return fmt.Sprintf("ended by the signal %q", s.Signal) }

// Run does the work and leaves the record of it, or repeats the record that is there already. Without an error there
// is a record; *Stopped is the error if a signal came first. Any other error means that the folder or the file cannot
// be used: the command is not run then, as nobody would know of it.
func (w *Worker) Run() error {
	w.step("begin")
	state := state{dir: w.Dir, at: w.step}
	record, found, err := state.record()
	switch {
	case err != nil:
		return err
	case found:
		w.say("this work is done, and is not done again: %s; the end of its output was:\n%s", describe(record), record.Output)
	default:
		if record, err = w.work(state); err != nil {
			return err
		}
		if err := state.save(record); err != nil {
			return err
		}
	}
	return w.report(record)
}

// work tries until there is a record.
func (w *Worker) work(state state) (Record, error) {
	tries, err := state.tries()
	if err != nil {
		return Record{}, err
	}
	limit := 1 + w.Retries
	for {
		if tries >= limit {
			// The last try was counted and never got to a record.
			text := fmt.Sprintf("goop-worker: the container was ended during try %d of %d\n", tries, limit)
			return Record{ExitCode: codeOfSignal(syscall.SIGKILL), Tries: int32(tries), Output: text}, nil
		}
		tries++
		if err := state.count(tries); err != nil {
			return Record{}, err
		}
		end, err := w.try()
		if err != nil {
			return Record{}, err
		}
		record := Record{ExitCode: end.code, Tries: int32(tries), Output: end.output}
		if end.code == 0 || end.hopeless || tries >= limit {
			return record, nil
		}
		pause := pauseAfter(tries, w.Pause)
		w.say("%s of %d; the next is in %s", describe(record), limit, pause)
		if err := w.wait(pause); err != nil {
			return Record{}, err
		}
	}
}

// pauseAfter grows with the number of tries.
func pauseAfter(tries int, first time.Duration) time.Duration {
	return min(time.Duration(tries)*first, maxPause)
}

// wait pauses, unless a signal ends it.
func (w *Worker) wait(pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case received := <-w.Signals:
		return &Stopped{asSyscall(received)}
	}
}

// report puts the record where the kubelet finds it. It is a file that is mounted, so it cannot be replaced.
func (w *Worker) report(record Record) error {
	text, err := encode(record)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(w.Termination, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("reporting the record: %w", err)
	}
	w.step("report")
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("reporting the record: %w", err)
	}
	w.step("reported")
	return nil
}

// say tells those who read the log. That nobody does is no error.
func (w *Worker) say(format string, args ...any) {
	_, _ = fmt.Fprintf(w.Stderr, "goop-worker: "+format+"\n", args...)
}

func (w *Worker) step(name string) {
	if w.at != nil {
		w.at(name)
	}
}

func describe(record Record) string {
	return fmt.Sprintf("exit code %d in try %d", record.ExitCode, record.Tries)
}

func codeOfSignal(signal syscall.Signal) int32 { return 128 + int32(signal) }

func asSyscall(received os.Signal) syscall.Signal {
	if number, ok := received.(syscall.Signal); ok {
		return number
	}
	return syscall.SIGTERM
}
