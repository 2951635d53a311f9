package singlewriter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		// It stops after 0.1 and 0.5 of the lease. It releases nothing, so there is no third part.
		RetryPeriod:   new(lease / 10),
		RenewDeadline: new(lease / 2),
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
			if err := write(ctx, mgr, herd, entry); err != nil && !apierrors.IsConflict(err) {
				return err
			}
		}
	}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// write writes an entry into the object as it was read. If it has changed since, the API server rejects that.
func write(ctx context.Context, mgr ctrl.Manager, herd client.ObjectKey, entry string) error {
	var object corev1.ConfigMap
	if err := mgr.GetAPIReader().Get(ctx, herd, &object); err != nil {
		return err
	}
	before := object.DeepCopy()
	object.Data = map[string]string{"last": entry}
	return mgr.GetClient().Patch(ctx, &object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
