package managed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/operator"
)

const (
	// passTimeout bounds one pass.
	passTimeout = time.Minute
	// drainTimeout bounds the passes that are under way when the operator is told to end, and stopTimeout
	// all that ends with them. Both are shorter than the terminationGracePeriodSeconds of its pod.
	drainTimeout = 5 * time.Second
	stopTimeout  = 10 * time.Second
)

// setLogger is for what controller-runtime logs apart from a manager, and takes effect once.
var setLogger sync.Once

// Run runs the controller until ctx ends, and returns when the passes under way have ended and the lease is
// released. It returns an error where it could not start or lost the lease.
func Run(ctx context.Context, config *rest.Config, options operator.Options) error {
	setLogger.Do(func() { ctrl.SetLogger(klog.FromContext(ctx)) })
	identity, err := foo.NewIdentity()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = foo.UserAgent("managed", identity)
	managerOptions, err := newManagerOptions(ctx, config, options, identity)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if err := check(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}

	// What outlives ctx: the passes under way, and then their Events.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	passes, abort := context.WithCancel(background)
	defer abort()
	context.AfterFunc(ctx, func() { time.AfterFunc(drainTimeout, abort) })
	recorder, err := newRecorder(background, config, mgr.GetHTTPClient(), mgr.GetScheme())
	if err != nil {
		return err
	}
	reconciler := NewFooReconciler(mgr.GetClient(), recorder, clock.RealClock{}, options.Image, options.MaxRetries)
	err = errors.Join(
		reconciler.SetupWithManager(passes, mgr, controller.Options{MaxConcurrentReconciles: options.Workers}),
		addProbes(mgr),
	)
	if err != nil {
		return fmt.Errorf("creating the controller of Foo: %w", err)
	}
	if err := start(ctx, mgr); err != nil {
		return err
	}
	recorder.flush()
	return nil
}

func newManagerOptions(ctx context.Context, restConfig *rest.Config, options operator.Options, identity string) (ctrl.Options, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))

	all := ctrl.Options{
		Scheme: scheme,
		Logger: klog.FromContext(ctx),
		Cache:  CacheOptions(),
		// A pass reads what the pass before it wrote, never an older state. Experimental in
		// controller-runtime 0.25; without it all still converges, with more writes.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Controller: config.Controller{
			ReconciliationTimeout: passTimeout,
			// Also a replica that is not the leader has its caches full, so that it can begin at once.
			EnableWarmup: new(true),
			// Several managers may run in one process, as in tests. They share the metrics of the name.
			SkipNameValidation: new(true),
		},
		Metrics: server.Options{
			BindAddress: options.MetricsAddress, SecureServing: true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		HealthProbeBindAddress:  options.ProbeAddress,
		GracefulShutdownTimeout: new(stopTimeout),
	}
	if options.LeaderElect {
		all.LeaderElection = true
		all.LeaderElectionReleaseOnCancel = true
		all.LeaseDuration, all.RenewDeadline, all.RetryPeriod = &options.LeaseDuration, &options.RenewDeadline, &options.RetryPeriod
		lock, err := newLock(restConfig, options.LeaderElectionNamespace, identity, options.RenewDeadline)
		if err != nil {
			return ctrl.Options{}, err
		}
		all.LeaderElectionResourceLockInterface = lock
	}
	return all, nil
}
