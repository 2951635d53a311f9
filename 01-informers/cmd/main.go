// Command manager is the Foo operator. It holds two implementations of the same controller, and a flag
// chooses: one on client-go alone, one on controller-runtime.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	// Authentication plugins, for kubeconfigs that name one.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/workbook/01-informers/internal/connect"
	"example.com/workbook/01-informers/internal/managed"
	"example.com/workbook/01-informers/internal/operator"
	"example.com/workbook/01-informers/internal/raw"
)

// implementations are the values of the flag --implementation.
var implementations = map[string]operator.Run{"raw": raw.Run, "managed": managed.Run}

type options struct {
	operator.Options
	implementation, kubeconfig string
}

func main() {
	// A set of its own: a package of controller-runtime has put a flag into flag.CommandLine.
	flags := flag.NewFlagSet("manager", flag.ExitOnError)
	o, logging := options{}, textlogger.NewConfig()
	o.declare(flags)
	flags.Var(logging.Verbosity(), "v", "How much is logged, from 0 up.")
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "manager takes no arguments, only flags: --help lists them\n")
		os.Exit(2)
	}
	klog.SetLoggerWithOptions(textlogger.NewLogger(logging), klog.ContextualLogger(true))

	if err := run(o); err != nil {
		klog.Background().Error(err, "The operator stopped")
		os.Exit(1)
	}
}

// declare defines the flags. The three times of leader election are those of kube-controller-manager, but for
// renewDeadline, which is 2 s less than its default. A leader that gets no response from the API server goes on working
// until it has waited for retryPeriod, has tried to renew the lease for renewDeadline, and, in the managed implementation,
// has tried to release it for half as long: all that has to be over before the lease has expired, or two replicas work
// at once.
func (o *options) declare(flags *flag.FlagSet) {
	flags.StringVar(&o.implementation, "implementation", "raw", "Which controller runs: raw (client-go alone) or managed (controller-runtime).")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "The kubeconfig to use. Default: the variable KUBECONFIG, else the ServiceAccount of the pod.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "Where metrics are served, over HTTPS, to callers with the permission to get /metrics. 0 turns them off.")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served. 0 turns them off.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "Work only while holding the lease, so that of several replicas one is at work.")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "The namespace of the lease. Outside a cluster it must be given.")
	flags.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long after the last renewal another replica waits before it acquires the lease.")
	flags.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 8*time.Second, "How long the leader tries to renew the lease before it stops working.")
	flags.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "How long replicas wait between attempts to acquire or renew the lease.")
	flags.StringVar(&o.Image, "foo-image", os.Getenv("RELATED_IMAGE_FOO"), "The image of every Foo's pods. Default: the variable RELATED_IMAGE_FOO.")
	flags.IntVar(&o.Workers, "max-concurrent-reconciles", 4, "How many objects are reconciled at once.")
	flags.IntVar(&o.MaxRetries, "max-retries", 15, "How often a Deployment that the API server rejects is tried again before the Foo is Stalled.")
}

func run(o options) error {
	runImplementation, ok := implementations[o.implementation]
	longest := o.RetryPeriod + o.RenewDeadline + o.RenewDeadline/2
	switch {
	case !ok:
		return fmt.Errorf("there is no implementation %q: --implementation is raw or managed", o.implementation)
	case o.Image == "":
		return errors.New("no image for the pods: give --foo-image or set RELATED_IMAGE_FOO")
	case o.Workers < 1:
		return fmt.Errorf("--max-concurrent-reconciles is %d: at least 1 is needed", o.Workers)
	case o.MaxRetries < 0:
		return fmt.Errorf("--max-retries is %d: it must not be negative", o.MaxRetries)
	case longest >= o.LeaseDuration:
		return fmt.Errorf("--leader-elect-lease-duration is %v, and has to be more than --leader-elect-retry-period and one and a half times --leader-elect-renew-deadline: %v", o.LeaseDuration, longest)
	}
	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	ctx, giveBack := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer giveBack()
	// The signals are given back as soon as one came: a second one ends the process at once.
	context.AfterFunc(ctx, giveBack)

	klog.Background().Info("Starting", "implementation", o.implementation)
	return connect.Explain(runImplementation(ctx, config, o.Options))
}

// restConfig is for the cluster of the flag, of KUBECONFIG or of the pod, in this order; never for one that a
// kubeconfig in the home folder happens to name. It has no limit on requests a second: the API server's own
// fairness sees to that.
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
