// Package operator is what the programs of both implementations of the Foo controller share: their flags, the recorder of
// Events, and the Lease for leader election.
package operator

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
)

// Run runs one implementation until ctx ends and everything it started has ended. It returns nil after a graceful
// shutdown, and an error if it could not start or lost the lease.
type Run func(ctx context.Context, config *rest.Config, options Options) error

// Options is what the flags set.
type Options struct {
	// MetricsAddress is where metrics are served, over HTTPS, to callers with the permission to get /metrics.
	// "0" turns them off.
	MetricsAddress string
	// ProbeAddress is where /healthz and /readyz are served. "0" turns them off.
	ProbeAddress string

	// LeaderElect says that it works only while it holds the lease.
	LeaderElect bool
	// LeaderElectionNamespace is the namespace of the lease. Empty: that of the pod.
	LeaderElectionNamespace string
	// LeaseDuration, RenewDeadline and RetryPeriod are those of leaderelection.LeaderElectionConfig.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// Image is the container image of every Foo's Deployment.
	Image string
	// Workers is how many Foos are reconciled at once.
	Workers int
	// MaxRetries is how often a Deployment that the API server rejects is tried again before the Foo is Stalled.
	MaxRetries int
}
