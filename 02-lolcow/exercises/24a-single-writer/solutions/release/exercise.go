package singlewriter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run is the main function of a replica. Its process ends when Run returns.
func Run(ctx context.Context, config *rest.Config, herd client.ObjectKey, lease time.Duration,
	next func(ctx context.Context) (string, error)) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              herd.Name,
		LeaderElectionNamespace:       herd.Namespace,
		LeaderElectionReleaseOnCancel: true,
		// A tenth and a third of the lease, and the release, which may last for another third.
		LeaseDuration: &lease,
		RetryPeriod:   new(lease / 10),
		RenewDeadline: new(lease / 3),
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(&writer{client: mgr.GetClient(), reader: mgr.GetAPIReader(), herd: herd, next: next}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// writer writes all entries as long as it is the only one that writes.
type writer struct {
	client client.Client
	reader client.Reader
	herd   client.ObjectKey
	next   func(ctx context.Context) (string, error)
}

// NeedLeaderElection has the manager start it when the process is the leader.
func (w *writer) NeedLeaderElection() bool { return true }

// Start reads once. Each update then returns the resourceVersion of the next one. If another process has written, it returns an
// error, and with it the manager ends.
func (w *writer) Start(ctx context.Context) error {
	var object corev1.ConfigMap
	if err := w.reader.Get(ctx, w.herd, &object); err != nil {
		return err
	}
	for {
		entry, err := w.next(ctx)
		if err != nil {
			return err
		}
		object.Data = map[string]string{"last": entry}
		if err := w.client.Update(ctx, &object); err != nil {
			return err
		}
	}
}
