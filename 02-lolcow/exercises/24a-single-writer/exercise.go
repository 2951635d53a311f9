//go:build start

package singlewriter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run is the main function of a replica. Its process ends when Run returns.
func Run(ctx context.Context, config *rest.Config, herd client.ObjectKey, lease time.Duration,
	next func(ctx context.Context) (string, error)) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        herd.Name,
		LeaderElectionNamespace: herd.Namespace,
		LeaseDuration:           &lease,
		// TODO: for how long does a leader work on that cannot renew its lease?
	})
	if err != nil {
		return err
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for {
			entry, err := next(ctx)
			if err != nil {
				return err
			}
			var object corev1.ConfigMap
			if err := mgr.GetAPIReader().Get(ctx, herd, &object); err != nil {
				return err
			}
			before := object.DeepCopy()
			object.Data = map[string]string{"last": entry}
			// TODO: what if this request arrives when another replica is the leader?
			if err := mgr.GetClient().Patch(ctx, &object, client.MergeFrom(before)); err != nil {
				return err
			}
		}
	}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
