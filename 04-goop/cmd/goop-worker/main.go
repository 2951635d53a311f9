// Command goop-worker does the work in the pods of a Goop. It is part of the operator's image. The first container of a
// pod copies it to a shared directory, the second container, which has another image, runs it from there, and the third
// one uses it to pause.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"example.com/workbook/04-goop/internal/worker"
)

const usage = `goop-worker install PATH
	copies this program to PATH
goop-worker pause
	does nothing until it gets a signal
goop-worker [flags] -- PROGRAM [ARGUMENT…]
	runs a program, again if it fails, records how it ended, and exits with 0 after that.
	If the end is recorded already, the program is not run again.
`

// exitUsage is the exit code for an invalid command line.
const exitUsage = 2

var (
	// endSignals are the signals that request the end of a program.
	endSignals = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP}

	// otherSignals are forwarded to the command, which would receive them if it were the first process of the container. An
	// image may use any of them to stop its containers.
	otherSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	signals, others := make(chan os.Signal, 8), make(chan os.Signal, 8)
	signal.Notify(signals, endSignals...)
	signal.Notify(others, otherSignals...)
	// If the reader of the output exits, a write fails, but the worker does not end. Ignoring the signal would have the
	// same effect, but the command would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	if len(args) == 2 && args[0] == "install" {
		return exitCode(worker.Install(args[1]))
	}
	if len(args) == 1 && args[0] == "pause" {
		<-signals
		return 0
	}
	w := &worker.Worker{Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals, Others: others}
	if err := parse(w, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		fmt.Fprintf(os.Stderr, "goop-worker: %v; see goop-worker --help\n", err)
		return exitUsage
	}
	return exitCode(w.Run())
}

func parse(w *worker.Worker, args []string) error {
	flags := flag.NewFlagSet("goop-worker", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&w.Retries, "retries", 0, "how often the program is retried if it does not exit with 0")
	flags.StringVar(&w.Dir, "dir", worker.DefaultDir, "the folder for the record and the number of tries")
	flags.StringVar(&w.Termination, "termination-log", worker.DefaultTermination, "the file that the record is repeated in")
	flags.DurationVar(&w.Pause, "pause", worker.DefaultPause, "the pause before the second try; each further one is longer by as much")
	flags.DurationVar(&w.Grace, "grace", worker.DefaultGrace, "how long the program may take to end after a signal")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(os.Stdout, usage)
			flags.SetOutput(os.Stdout)
			flags.PrintDefaults()
		}
		return err
	}
	w.Command = flags.Args()
	switch {
	case len(w.Command) == 0 || w.Command[0] == "":
		return errors.New("no program is named")
	case w.Retries < 0:
		return fmt.Errorf("--retries=%d: it cannot be negative", w.Retries)
	}
	return nil
}

// exitCode prints an error and returns the exit code for it.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "goop-worker: %v\n", err)
	if stopped := (*worker.Stopped)(nil); errors.As(err, &stopped) {
		return 128 + int(stopped.Signal)
	}
	return 1
}
