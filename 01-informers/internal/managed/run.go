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
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
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
	// reconcileTimeout bounds one reconciliation.
	reconcileTimeout = time.Minute
	// drainTimeout bounds the reconciliations under way when the operator is stopped, and stopTimeout the whole shutdown. Both
	// are shorter than the terminationGracePeriodSeconds of the pod.
	drainTimeout = 5 * time.Second
	stopTimeout  = 10 * time.Second
)

// setLogger sets the logger of what controller-runtime logs without a manager, once.
var setLogger sync.Once

// AddToScheme adds the kinds that the controller works with.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// Run is RunWith for the controller of Foo alone.
func Run(ctx context.Context, config *rest.Config, options operator.Options) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(AddToScheme(scheme))
	return RunWith(ctx, config, options, scheme, func(ctrl.Manager) error { return nil })
}

// RunWith runs the controller, and those that addMore adds to its manager, until ctx ends. It returns when the reconciliations
// under way have ended and the lease is released, or with an error if it could not start or lost the lease. The scheme has the
// kinds of AddToScheme, and may have others.
func RunWith(ctx context.Context, config *rest.Config, options operator.Options, scheme *runtime.Scheme, addMore func(ctrl.Manager) error) error {
	setLogger.Do(func() { ctrl.SetLogger(klog.FromContext(ctx)) })
	identity, err := foo.NewIdentity()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = foo.UserAgent("managed", identity)
	managerOptions, err := newManagerOptions(ctx, config, options, scheme, identity)
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

	// What outlives ctx: reconciliations under way may use working until drainTimeout, and background is for the writes of
	// their Events.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	working, cancel := context.WithCancel(background)
	defer cancel()
	context.AfterFunc(ctx, func() { time.AfterFunc(drainTimeout, cancel) })
	events, err := eventsv1client.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for Events: %w", err)
	}
	recorder, err := operator.NewRecorder(background, events, mgr.GetScheme())
	if err != nil {
		return err
	}
	defer recorder.Stop()
	reconciler := NewFooReconciler(mgr.GetClient(), recorder, clock.RealClock{}, options.Image, options.MaxRetries)
	err = errors.Join(
		reconciler.SetupWithManager(working, mgr, controller.Options{MaxConcurrentReconciles: options.Workers}),
		addProbes(mgr),
	)
	if err != nil {
		return fmt.Errorf("creating the controller of Foo: %w", err)
	}
	if err := addMore(mgr); err != nil {
		return err
	}
	if err := start(ctx, mgr); err != nil {
		return err
	}
	flushing, stop := context.WithTimeout(background, operator.FlushTimeout)
	defer stop()
	recorder.Flush(flushing)
	return nil
}

func newManagerOptions(ctx context.Context, restConfig *rest.Config, options operator.Options, scheme *runtime.Scheme, identity string) (ctrl.Options, error) {
	all := ctrl.Options{
		Scheme: scheme,
		Logger: klog.FromContext(ctx),
		Cache:  CacheOptions(),
		// A reconciliation reads what the one before it wrote, never an older state. Experimental in
		// controller-runtime 0.25; without it the operator reaches the same state, with more writes.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Controller: config.Controller{
			ReconciliationTimeout: reconcileTimeout,
			// A replica that is not the leader fills its caches too, so that it can begin at once.
			EnableWarmup: new(true),
			// Several managers may run in one process, as in tests. Their metrics have the same name.
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
		lock, err := operator.NewLock(restConfig, options, identity)
		if err != nil {
			return ctrl.Options{}, err
		}
		all.LeaderElectionResourceLockInterface = lock
	}
	return all, nil
}
