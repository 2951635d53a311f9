// Command harness is what the Makefiles call: clusters, images, deploying and running a stage's
// operator. `harness --help` lists its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/proc"
)

func main() {
	proc.OutliveReader()
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	// A second Ctrl-C ends the harness at once; the next run repairs what is left.
	context.AfterFunc(ctx, stop)
	// controller-runtime complains if no logger is set; the client has nothing to say.
	ctrllog.SetLogger(logr.Discard())

	err := newRoot().ExecuteContext(ctx)
	if err == nil {
		return
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "harness: interrupted")
		os.Exit(130)
	}
	fmt.Fprintln(os.Stderr, "harness:", config.Explain(err))
	os.Exit(1)
}

// endSignals are those that end the harness in order. nohup is respected.
func endSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "harness",
		Short:         "Clusters, images and deployments for the stages",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newCluster(), newEnv(), newKubectl(), newBinaries(), newAssets(), newImage(), newLoad(),
		newInstall(), newUninstall(), newDeploy(), newUndeploy(), newRun(), newDoctor())
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}
