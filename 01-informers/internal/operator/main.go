package operator

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	// Authentication plugins, for kubeconfigs that name one.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/workbook/01-informers/internal/connect"
)

// Main is the main function of an operator's program: it parses the flags, runs an implementation until the process gets
// SIGTERM or SIGINT, and returns the exit code.
func Main(program string, run Run) int {
	// Not flag.CommandLine: a package of controller-runtime adds a flag to it.
	flags := flag.NewFlagSet(program, flag.ExitOnError)
	o, logging := flagged{}, textlogger.NewConfig()
	o.bind(flags)
	flags.Var(logging.Verbosity(), "v", "How much is logged, from 0 up.")
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s takes no arguments, only flags: --help lists them\n", program)
		return 2
	}
	klog.SetLoggerWithOptions(textlogger.NewLogger(logging), klog.ContextualLogger(true))

	if err := o.start(run); err != nil {
		klog.Background().Error(err, "The operator stopped")
		return 1
	}
	return 0
}

// start runs an implementation on the cluster that the flags name.
func (o *flagged) start(run Run) error {
	if err := o.validate(); err != nil {
		return err
	}
	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// After the first signal they are no longer caught: a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	return connect.Explain(run(ctx, config, o.Options))
}

// restConfig returns the access to the cluster of the flag, of KUBECONFIG or of the pod, in this order, never of the
// kubeconfig in the home folder. It has no limit on requests a second: the API server has API Priority and Fairness.
func restConfig(kubeconfig string) (*rest.Config, error) {
	load := rest.InClusterConfig
	if kubeconfig != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = kubeconfig
		load = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig
	}
	config, err := load()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	connect.GuardWatches(config)
	return config, nil
}
