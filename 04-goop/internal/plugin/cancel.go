package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const cancelHelp = `Delete Goops, whether they have ended or not, and with them their workers.

A worker that is running gets SIGTERM, and SIGKILL after 10 seconds.
A cleanupCmd runs before the Goop is removed; this command does not wait for it.`

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel NAME...",
		Short: "Delete Goops, and with them their workers",
		Long:  cancelHelp,
		Example: `  # End the work of a Goop, and remove it
  kubectl goop cancel run-abc12`,
		Args:              goopNames(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeMany,
		RunE: func(command *cobra.Command, args []string) error {
			api, err := a.connect()
			if err != nil {
				return err
			}
			var failed error
			for _, name := range args {
				failed = errors.Join(failed, cancel(command.Context(), api, name, a.streams.Out))
			}
			return failed
		},
	}
}

// cancel deletes one Goop and reports that to out.
func cancel(ctx context.Context, api *api, name string, out io.Writer) error {
	goop, err := api.goops.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return explained(err)
	}
	err = api.goops.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(goop.UID))})
	if err != nil {
		return explained(err)
	}
	did := "deleted"
	if len(goop.Finalizers) > 0 {
		did = "being deleted, after its cleanup"
	}
	_, err = fmt.Fprintf(out, "%s%s %s\n", resourcePrefix, name, did)
	return err
}
