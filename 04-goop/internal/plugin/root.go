package plugin

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

// name is what the program is called by.
const name = "kubectl goop"

const rootHelp = `Run a command on the nodes of a cluster, and see what it writes.

A command is run by a Goop, an object that the goop operator sees to: once on
every eligible node, or as often as --count says. It is run at least once: one
whose node is lost before the operator saw it end is run again elsewhere.

` + exitHelp

const exitHelp = `Exit codes of run and wait:
  0    every worker ended with 0
  N    the highest exit code of any worker
  1    the Goop was refused or deleted, or anything else went wrong
  2    the command line makes no sense
  124  --timeout was over, or the Goop's own deadline
  130  Ctrl-C; 128 and the number of the signal with SIGTERM or SIGHUP
A worker may end with any of these too: where that matters, use -o json.

With -o json each line is an object. One a worker, when it has ended:
  {"type":"worker","node":"n1","round":0,"exitCode":0,"tries":1,
   "output":"…","outputFrom":"log"}
and a last one: {"type":"summary","goop":"…","namespace":"…","reason":"…",
   "exitCode":0,"desired":3,"succeeded":3,"failed":0}
exitCode is null where it is not known. outputFrom is "record" where the log
could not be had, with the reason in outputError: then output is the last 2 KiB
at most. Of a longer output than 1 MiB the rest is left out, outputClipped bytes
of it. reason is Succeeded, WorkersFailed, DeadlineExceeded, RecordLost,
HostAccessRefused, TimedOut, Interrupted, Deleted or Error; with unfinished work,
"unfinished" lists the workers that were seen and have not ended.`

// app is one run of the program.
type app struct {
	streams genericiooptions.IOStreams
	console *console
	flags   *genericclioptions.ConfigFlags
	global  *pflag.FlagSet // flags, as they were parsed
	clock   clock.WithTicker

	// left is what to say when a second signal ends the program at once: what that leaves behind.
	left atomic.Pointer[string]
}

// Main runs the program and returns its exit code. The first of the signals lets it cancel its work and end, the
// second ends it at once.
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
		code <- a.exitCode(ctx, command.ExecuteContext(ctx))
	}()
	for signalled := false; ; signalled = true {
		select {
		case code := <-code:
			return code
		case signal := <-signals:
			if signalled {
				return a.leave(signalError{signal})
			}
			end(signalError{signal})
		}
	}
}

// newFlags are the flags that kubectl has everywhere.
func newFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag()
}

// leave ends the program at once. It takes no lock: somebody may wait for the output to be taken, and hold it.
func (a *app) leave(signal signalError) int {
	if a.console.redraw {
		fmt.Fprint(a.streams.ErrOut, eraseLine)
	}
	if left := a.left.Load(); left != nil {
		fmt.Fprintf(a.streams.ErrOut, "goop: left at once; %s\n", *left)
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

// usage makes usageErrors of what a check of arguments says.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if err := check(command, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// connect makes the clients that the flags ask for.
func (a *app) connect() (*api, error) { return connect(a.flags, a.streams.ErrOut, false) }
