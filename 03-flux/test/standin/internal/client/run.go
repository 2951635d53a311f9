package client

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"example.com/workbook/03-flux/test/standin/internal/config"
	"example.com/workbook/03-flux/test/standin/internal/wire"
	"example.com/workbook/03-flux/test/standin/internal/words"
)

// Exit codes of `flux run` if no task runs.
const (
	exitFailed = 1
	exitUsage  = 2
)

// defaultExitTimeout is that of a broker: it is short, and counts from the end of the first task, whatever its exit
// code.
const defaultExitTimeout = 30 * time.Second

// errUsage is an error of the command line.
var errUsage = errors.New("usage: flux run [OPTIONS...] COMMAND [ARGS...]")

// Run is `flux run`: it runs a command as tasks, prints their output, and returns the exit code.
func Run(args []string, stdout, stderr io.Writer) int {
	work, err := parse(args)
	if errors.Is(err, errUsage) {
		fmt.Fprintf(stderr, "%v\n", err)
		return exitUsage
	}
	if err == nil {
		var code int
		if code, err = run(work, stdout, stderr); err == nil {
			return code
		}
	}
	fmt.Fprintf(stderr, "flux-run: ERROR: %v\n", err)
	return exitFailed
}

// parse parses the part of the command line that the operator uses.
func parse(args []string) (*wire.Work, error) {
	flags := pflag.NewFlagSet("flux-run", pflag.ContinueOnError)
	flags.SetInterspersed(false)
	flags.SetOutput(io.Discard)
	nodes := flags.IntP("nodes", "N", 0, "")
	tasks := flags.IntP("ntasks", "n", 0, "")
	options := flags.StringArrayP("setopt", "o", nil, "")
	if err := flags.Parse(args); err != nil {
		if value, isValue := errors.AsType[*pflag.InvalidValueError](err); isValue {
			return nil, value
		}
		return nil, fmt.Errorf("%w\nflux run: error: %w", errUsage, err)
	}
	for flag, value := range map[string]int{"nodes": *nodes, "ntasks": *tasks} {
		if flags.Changed(flag) && value < 1 {
			return nil, words.Errorf("%s must be an integer >= 1 (if set)", flag)
		}
	}
	work := &wire.Work{Args: flags.Args(), Env: os.Environ(), Nodes: *nodes, Tasks: *tasks, ExitTimeout: defaultExitTimeout}
	if work.Tasks == 0 {
		work.Tasks = max(1, work.Nodes)
	}
	switch {
	case len(work.Args) == 0:
		return nil, words.Error("job command and arguments are missing")
	case work.Nodes > work.Tasks:
		return nil, words.Error("node count must not be greater than task count")
	}
	return work, setOptions(work, *options)
}

// setOptions parses the options after -o. Like a broker, it ignores those that it does not know.
func setOptions(work *wire.Work, options []string) (err error) {
	for _, option := range options {
		value, found := strings.CutPrefix(option, "exit-timeout=")
		switch {
		case !found:
		case value == "none":
			work.ExitTimeout = 0
		default:
			if work.ExitTimeout, err = config.Duration(value); err != nil {
				return words.Errorf("exit-timeout: %v", err)
			}
		}
	}
	return nil
}

// run sends the work to a broker, and waits for its end.
func run(work *wire.Work, stdout, stderr io.Writer) (code int, err error) {
	if work.Dir, err = os.Getwd(); err != nil {
		return 0, words.System(err)
	}
	broker, err := connect()
	if err != nil {
		return 0, err
	}
	defer broker.Close()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := broker.Send(wire.Message{Type: wire.Run, Work: work}); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = broker.Send(wire.Message{Type: wire.Signal, Signal: s.(syscall.Signal)}) // the receiver notices a lost connection
		}
	}()
	for {
		m, err := broker.Receive()
		if err != nil {
			return 0, words.Error("lost connection to the broker")
		}
		switch m.Type {
		case wire.Output:
			out := stdout
			if m.Stream == wire.Stderr {
				out = stderr
			}
			_, _ = out.Write(m.Data) // standard output may be closed
		case wire.Note:
			fmt.Fprint(stderr, m.Text)
		case wire.Done:
			return m.Code, nil
		}
	}
}
