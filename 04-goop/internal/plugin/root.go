package plugin

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

// oneSignal is the time after a first signal within which a second one, except Ctrl-C, counts as the same: timeout(1)
// signals both the program and its process group, and so do the kernel and the shell of a terminal that is closed.
const oneSignal = time.Second

// name is how users call the program.
const name = "kubectl goop"

const rootHelp = `Run a command on the nodes of a cluster, and see what it writes.

A command is run by a Goop, an object that the goop operator sees to: once on
every eligible node, or as often as --count says. It is run at least once: one
whose node is lost before the operator saw it end is run again elsewhere.

` + exitHelp

const exitHelp = `Exit codes of run and wait:
  0    every worker ended with 0
  N    the highest exit code of any worker
  1    the Goop was rejected or deleted, or anything else went wrong
  2    the command line makes no sense
  124  --timeout was exceeded, or the Goop's own deadline
  130  Ctrl-C; 128 and the number of the signal with SIGTERM, SIGHUP or SIGQUIT
A worker may end with any of these too: where that matters, use -o json.

With -o json each line is an object. One a worker, when it has ended:
  {"type":"worker","node":"n1","round":0,"exitCode":0,"tries":1,
   "output":"…","outputFrom":"log"}
and a last one: {"type":"summary","goop":"…","namespace":"…","reason":"…",
   "exitCode":0,"desired":3,"succeeded":3,"failed":0}
exitCode is null where it is not known. outputFrom is "record" where the log
is not available, with the reason in outputError: then output is the last 2 KiB
at most. Of a longer output than 1 MiB the rest is left out, outputClipped bytes
of it. reason is Succeeded, WorkersFailed, DeadlineExceeded, RecordLost,
HostAccessNotAllowed, TimedOut, Interrupted, Deleted or Error; with unfinished work,
"unfinished" lists the workers that were seen and have not ended.`

// app is one execution of the program.
type app struct {
	streams genericiooptions.IOStreams
	console *console
	flags   *genericclioptions.ConfigFlags
	global  *pflag.FlagSet // the persistent flags, after parsing
	clock   clock.WithTicker

	// left is the message about what remains in the cluster if a second signal ends the program at once.
	left atomic.Pointer[string]
}

// Main runs the program and returns its exit code. The first signal lets the program cancel its work and end. The second
// one ends it at once: Ctrl-C always, any other if it arrives at least a second after the first.
func Main(args []string, streams genericiooptions.IOStreams, signals <-chan os.Signal) int {
	a := &app{
		streams: streams,
		console: newConsole(streams),
		flags:   newFlags(),
		clock:   clock.RealClock{},
	}
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	code := make(chan int, 1)
	go func() {
		command := a.command() //nolint:contextcheck // cobra hands the context to the commands
		command.SetArgs(args)
		exit := a.exitCode(ctx, command.ExecuteContext(ctx))
		a.console.flush(ctx)
		code <- exit
	}()
	var first time.Time
	for {
		select {
		case code := <-code:
			return code
		case signal := <-signals:
			switch {
			case first.IsZero():
				first = a.clock.Now()
				end(signalError{signal})
			case signal == os.Interrupt || a.clock.Since(first) >= oneSignal:
				return a.leave(signalError{signal})
			}
		}
	}
}

// newFlags returns the flags that all kubectl commands have.
func newFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag()
}

// leave ends the program at once. It takes no lock, and waits only a short time for its message to be written: the reader
// of the output may have paused, and a goroutine that waits for it may hold the lock.
func (a *app) leave(signal signalError) int {
	written := make(chan struct{})
	go func() {
		defer close(written)
		if a.console.redraw {
			fmt.Fprint(a.streams.ErrOut, eraseLine)
		}
		if left := a.left.Load(); left != nil {
			fmt.Fprintf(a.streams.ErrOut, "goop: left at once; %s\n", *left)
		}
	}()
	select {
	case <-written:
	case <-time.After(noticeWithin):
	}
	return signal.code()
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-goop",
		Short:         "Run a command on the nodes of a cluster",
		Long:          rootHelp,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usage(cobra.NoArgs),
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	a.global = root.PersistentFlags()
	a.flags.AddFlags(a.global)
	a.completeFlags(root)
	root.AddCommand(a.runCommand(), a.lsCommand(), a.logsCommand(), a.waitCommand(), a.cancelCommand())
	return root
}

// usage turns the error of an argument check into a usageError.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if err := check(command, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// connect creates the clients that the flags select.
func (a *app) connect() (*api, error) { return connect(a.flags, a.streams.ErrOut, false) }
