package plugin

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const logsHelp = `Show what the workers of a Goop have written so far, as run does.

The log of a worker is there as long as its pod: until the Goop is deleted, or
its ttlSecondsAfterFinished are over. Of workers that failed the operator keeps
the end of the output, of the first 20 of them; that is shown where a log is
gone. The exit code is 0 however the workers ended: see wait.`

const logsExamples = `  # What has been written so far
  kubectl goop logs run-abc12

  # All of it, also what is still to come
  kubectl goop logs run-abc12 --follow`

func (a *app) logsCommand() *cobra.Command {
	var (
		format outputFlags
		follow bool
	)
	command := &cobra.Command{
		Use:               "logs NAME",
		Short:             "Show what the workers of a Goop have written",
		Long:              logsHelp,
		Example:           logsExamples,
		Args:              goopNames(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeOne,
		RunE: func(command *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			return a.logs(command.Context(), &format, args[0], follow)
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the Goop has ended")
	format.add(command)
	return command
}

func (a *app) logs(ctx context.Context, format *outputFlags, name string, follow bool) error {
	s, err := a.sessionOf(ctx, name)
	if err != nil {
		return err
	}
	format.use(s, a.console)
	if s.goop.DeletionTimestamp != nil {
		a.console.say("the Goop %s is being deleted: nothing is to come, and this is what is there", name)
		follow = false
	}
	s.toTheEnd = follow
	if !follow {
		a.console.redraw = false
	}
	why := a.follow(ctx, s, func(error) {})
	if why != nil {
		return a.conclude(s, why, s.goesOn(), 0)
	}
	outcome, _ := s.ending(nil, 0)
	switch {
	case s.goop.Ended():
	case s.goop.DeletionTimestamp != nil:
		outcome.reason = "Deleted"
	default:
		outcome.reason = "Running"
	}
	return s.sink.finish(outcome)
}

// sessionOf creates a session for an existing Goop.
func (a *app) sessionOf(ctx context.Context, name string) (*session, error) {
	api, err := a.connect()
	if err != nil {
		return nil, err
	}
	goop, err := api.goops.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explained(err)
	}
	s := newSession(a, api, goop)
	s.progress.status.Store(&goop.Status)
	s.progress.since = goop.CreationTimestamp.Time
	return s, nil
}
