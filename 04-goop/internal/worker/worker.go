package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// The paths of a worker's state and of its termination message, as in the pods that the operator creates.
const (
	DefaultDir         = "/goop"
	DefaultTermination = "/dev/termination-log"
)

const (
	// DefaultPause is the pause before the second try. Each further pause is longer by the same time, up to maxPause.
	DefaultPause = time.Second

	maxPause = 10 * time.Second

	// saveAttempts is how often the worker tries to save the record: for about a minute with the default pause.
	saveAttempts = 11

	// DefaultGrace is how long a command may take to end after a signal: less than the ten seconds of its pod.
	DefaultGrace = 8 * time.Second
)

// Worker runs a command until it has ended with 0, or until no tries are left.
type Worker struct {
	// Command is the program and its arguments.
	Command []string
	// Retries is how often the command is retried.
	Retries int
	// Dir is a directory that exists as long as the pod, so that it survives a restart of the container.
	Dir string
	// Termination is the file that the kubelet reads when the container has terminated.
	Termination string
	// Pause is the pause before the second try.
	Pause time.Duration
	// Grace is how long the command may take to end after a signal. Then it is killed.
	Grace time.Duration
	// Stdout and Stderr receive the command's output unchanged. Stderr also receives the messages of the worker. The
	// command continues if one of them is closed.
	Stdout, Stderr io.Writer
	// Signals are received signals that request the end of the worker. Each is forwarded to the command and ends the work:
	// there are no further tries, and no record.
	Signals <-chan os.Signal
	// Others are received signals that are meant for the command. Each is forwarded to it, and the work continues. If the
	// command terminates by the signal, the work ends as after one of Signals.
	Others <-chan os.Signal

	// at is called at each step, so that a test can end the process there.
	at func(step string)
}

// Stopped means that a signal ended the work before it was finished.
type Stopped struct{ Signal syscall.Signal }

func (s *Stopped) Error() string { return fmt.Sprintf("ended by the signal %q", s.Signal) }

// Run does the work and writes its record, or repeats an existing record. If it returns no error, there is a record. The
// error is *Stopped if a signal came first. Any other error means that the directory or the file cannot be used: then the
// command is not run, because its result could not be reported.
func (w *Worker) Run() error {
	w.step("begin")
	state := state{dir: w.Dir, at: w.step}
	record, found, err := state.record()
	switch {
	case err != nil:
		return err
	case found:
		w.say("this worker has finished, and does not run again: %s; the end of its output was:\n%s", describe(record), record.Output)
	default:
		if record, err = w.work(state); err != nil {
			return err
		}
		w.save(state, record)
	}
	return w.report(record)
}

// work runs the command until there is a record.
func (w *Worker) work(state state) (Record, error) {
	tries, err := state.tries()
	if err != nil {
		return Record{}, err
	}
	limit := 1 + w.Retries
	for {
		if tries >= limit {
			// The last try was counted, but the container was killed before there was a record.
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

// save saves the record, and retries if that fails, because the disk of a node may be full for a moment. The work must
// not run again because of that, so the record is reported even if it cannot be saved.
func (w *Worker) save(state state, record Record) {
	for attempt := 1; ; attempt++ {
		err := state.save(record)
		if err == nil {
			return
		}
		if attempt == saveAttempts {
			w.say("the record is reported, and not saved: %v", err)
			return
		}
		if w.wait(pauseAfter(attempt, w.Pause)) != nil {
			// The pod is terminating. The kubelet still reads the termination message.
			return
		}
	}
}

// pauseAfter returns a pause that grows with the number of tries.
func pauseAfter(tries int, first time.Duration) time.Duration {
	return min(time.Duration(tries)*first, maxPause)
}

// wait returns when the time has expired or a signal arrives.
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

// report writes the record to the termination message. The file is a mount, so it cannot be replaced by a rename.
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

// say writes a message to the log. A write error is ignored, because the work does not depend on it.
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
