package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

const waitHelp = `Wait until a Goop has ended, and exit as run does.

It prints nothing but, with -o json, the summary. Ctrl-C and --timeout end the
waiting; the work continues.

`

func (a *app) waitCommand() *cobra.Command {
	var (
		format  outputFlags
		timeout time.Duration
	)
	command := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a Goop has ended, and exit as run does",
		Long:  waitHelp + exitHelp,
		Example: `  # Wait at most ten minutes
  kubectl goop wait run-abc12 --timeout 10m`,
		Args:              goopNames(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeOne,
		RunE: func(command *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			if timeout < 0 {
				return usageError{fmt.Errorf("--timeout: must not be negative")}
			}
			return a.wait(command.Context(), &format, args[0], timeout)
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time, as 90s or 1h30m; never, if unset")
	format.addFormat(command)
	return command
}

func (a *app) wait(ctx context.Context, format *outputFlags, name string, timeout time.Duration) error {
	if timeout > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, timeout, errTimedOut)
		defer done()
	}
	s, err := a.sessionOf(ctx, name)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errTimedOut):
		a.console.say("timed out after %s: %v", timeout, err)
		return exitError(exitTimedOut)
	case err != nil:
		return err
	}
	s.toTheEnd = true
	why := a.follow(ctx, s, func(error) {})
	if format.format == "json" {
		s.sink = &jsonSink{console: a.console}
	}
	return a.conclude(s, why, s.goesOn(), timeout)
}

// goesOn returns a message if a Goop that is no longer followed still exists and has not ended.
func (s *session) goesOn() string {
	if s.deleted || s.goop.Ended() || rejectionMessage(s.goop) != "" {
		return ""
	}
	return "the Goop " + s.goop.Name + " continues"
}
