// Package operator is what the programs of both implementations of the Foo controller share: their flags, the recorder of
// Events, and the Lease for leader election.
package operator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

// Run runs one implementation until ctx ends and everything it started has ended. It returns nil after a graceful
// shutdown, and an error if it could not start or lost the lease.
type Run func(ctx context.Context, config *rest.Config, options Options) error

// Options is what the flags set: bind has their meanings and defaults.
type Options struct {
	// For both addresses, "0" is off.
	MetricsAddress string
	ProbeAddress   string

	LeaderElect             bool
	LeaderElectionNamespace string
	// Those of leaderelection.LeaderElectionConfig.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	Image      string
	Workers    int
	MaxRetries int
}

// flagged has what the flags of a program set.
type flagged struct {
	Options
	kubeconfig string
}

// bind defines the flags. The three times of leader election are those of kube-controller-manager, but for
// renewDeadline, which is 4 s less than its default. A leader that gets no response from the API server goes on working
// until it has waited for retryPeriod, has tried to renew the lease for renewDeadline, and, in the managed implementation,
// has tried to release it for as long again: all that has to be over before the lease has expired, or two replicas work
// at once.
func (o *flagged) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "The kubeconfig to use. Default: the variable KUBECONFIG, else the ServiceAccount of the pod.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "Where metrics are served, over HTTPS, to callers with the permission to get /metrics. 0 turns them off.")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served. 0 turns them off.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "Work only while holding the lease, so that of several replicas one is at work.")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "The namespace of the lease. Outside a cluster it must be given.")
	flags.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long after the last renewal another replica waits before it acquires the lease.")
	flags.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 6*time.Second, "How long the leader tries to renew the lease before it stops working.")
	flags.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "How long replicas wait between attempts to acquire or renew the lease.")
	flags.StringVar(&o.Image, "foo-image", os.Getenv("RELATED_IMAGE_FOO"), "The image of every Foo's pods. Default: the variable RELATED_IMAGE_FOO.")
	flags.IntVar(&o.Workers, "max-concurrent-reconciles", 4, "How many objects are reconciled at once.")
	flags.IntVar(&o.MaxRetries, "max-retries", 15, "How often a Deployment that the API server rejects is tried again before the Foo is Stalled.")
}

// validate rejects values that are out of bounds, and times of leader election by which two replicas could work at once: see bind.
func (o *flagged) validate() error {
	longest := o.RetryPeriod + 2*o.RenewDeadline
	switch {
	case o.Image == "":
		return errors.New("no image for the pods: give --foo-image or set RELATED_IMAGE_FOO")
	case o.Workers < 1:
		return fmt.Errorf("--max-concurrent-reconciles is %d: at least 1 is needed", o.Workers)
	case o.MaxRetries < 0:
		return fmt.Errorf("--max-retries is %d: it must not be negative", o.MaxRetries)
	case longest >= o.LeaseDuration:
		return fmt.Errorf("--leader-elect-lease-duration is %v, and has to be more than --leader-elect-retry-period and twice --leader-elect-renew-deadline: %v", o.LeaseDuration, longest)
	}
	return nil
}
