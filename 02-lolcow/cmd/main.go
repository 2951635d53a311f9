// Command manager is the Lolcow operator.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	// Authentication plugins, for kubeconfigs that name one.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/internal/controller"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

type options struct {
	manager     managerOptions
	lolcowImage string
	// starter: not in a copy
	conversion *conversionWebhook
	// starter: end
}

// managerOptions are the flags that every operator of this kind has.
type managerOptions struct {
	metricsAddress, probeAddress              string
	leaderElect                               bool
	leaderElectionNamespace                   string
	leaseDuration, renewDeadline, retryPeriod time.Duration
	concurrency                               int
}

// bindFlags defines the flags. The three times of leader election are those of kube-controller-manager, but for
// renewDeadline, which is 4 s less than its default. A leader that gets no response from the API server goes on working
// until it has waited for retryPeriod, has tried to renew the lease for renewDeadline, and has tried to release it for
// as long again: all that has to be over before the lease has expired, or two replicas work at once.
func (o *managerOptions) bindFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "Where metrics are served, over HTTPS, to callers with the permission to get /metrics. 0 turns them off.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "Reconcile only while holding the lease, so that only one of several replicas is active.")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "", "The namespace of the lease. Outside a cluster it must be given.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long after the last renewal another replica waits before it acquires the lease.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 6*time.Second, "How long the leader tries to renew the lease before it stops working.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "How long replicas wait between attempts to acquire or renew the lease.")
	flags.IntVar(&o.concurrency, "max-concurrent-reconciles", 4, "How many objects are reconciled at once.")
}

// validate rejects arguments: of `--leader-elect true --metrics-bind-address=0` the flag package reads the first flag only. And
// it rejects times of leader election by which two replicas could work at once: see bindFlags.
func (o *managerOptions) validate(arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("%q is no flag, and no flag after it is read: write --flag=value", arguments[0])
	}
	if longest := o.retryPeriod + 2*o.renewDeadline; longest >= o.leaseDuration {
		return fmt.Errorf("--leader-elect-lease-duration is %v, and has to be more than --leader-elect-retry-period and twice --leader-elect-renew-deadline: %v", o.leaseDuration, longest)
	}
	return nil
}

func main() {
	var o options
	o.manager.bindFlags(flag.CommandLine)
	flag.StringVar(&o.lolcowImage, "lolcow-image", os.Getenv("RELATED_IMAGE_LOLCOW"), "The server's image for Lolcows whose spec names none. Default: the variable RELATED_IMAGE_LOLCOW.")
	// starter: not in a copy
	o.conversion = bindConversionFlags(flag.CommandLine)
	// starter: end
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(o); err != nil {
		setupLog.Error(err, "The operator stopped")
		os.Exit(1)
	}
}

func run(o options) error {
	if o.lolcowImage == "" {
		return errors.New("no server image: give --lolcow-image or set RELATED_IMAGE_LOLCOW")
	}
	if err := o.manager.validate(flag.Args()); err != nil {
		return err
	}
	// The client does not limit its requests per second: API Priority and Fairness does, in the API server.
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}

	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Cache:  controller.CacheOptions(),
		// A reconciliation reads what the one before it wrote, never an older state. Experimental in
		// controller-runtime 0.25; without it the operator reaches the same state, with more writes.
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Controller:                    config.Controller{ReconciliationTimeout: time.Minute},
		Metrics:                       server.Options{BindAddress: o.manager.metricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization},
		HealthProbeBindAddress:        o.manager.probeAddress,
		LeaderElection:                o.manager.leaderElect,
		LeaderElectionID:              "lolcow.my.domain",
		LeaderElectionNamespace:       o.manager.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.manager.leaseDuration,
		RenewDeadline:                 &o.manager.renewDeadline,
		RetryPeriod:                   &o.manager.retryPeriod,
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}

	ctx := ctrl.SetupSignalHandler()
	reconciler := controller.NewLolcowReconciler(mgr.GetClient(), mgr.GetEventRecorder("lolcow-controller"), clock.RealClock{}, o.lolcowImage)
	if err := reconciler.SetupWithManager(ctx, mgr, ctrlcontroller.Options{MaxConcurrentReconciles: o.manager.concurrency}); err != nil {
		return fmt.Errorf("creating the controller of Lolcow: %w", err)
	}
	// starter: not in a copy
	if err := o.conversion.setup(ctx, mgr); err != nil {
		return fmt.Errorf("setting up the conversion webhook: %w", err)
	}
	// starter: end
	// +kubebuilder:scaffold:builder

	if err := errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping)); err != nil {
		return fmt.Errorf("adding probes: %w", err)
	}
	return start(ctx, mgr)
}

// start runs the manager until ctx ends, and also ends where mgr.Start does not: before the caches are full, for instance
// while a permission to list is missing. runnableGroup.Start in pkg/manager/runnable_group.go of controller-runtime v0.25.2
// waits for the caches nevertheless, in a busy loop
// (https://github.com/kubernetes-sigs/controller-runtime/pull/3440). So the manager is stopped only once it has started. Before
// that it has begun nothing that the end of the process could interrupt.
func start(ctx context.Context, mgr ctrl.Manager) error {
	running := make(chan struct{})
	if err := mgr.Add(startSignal(running)); err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	mgrCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(mgrCtx) }()
	select {
	case <-running:
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
	context.AfterFunc(ctx, stop)
	return <-ended
}

// startSignal is closed when the manager has started: as a Runnable of the manager, it is started once the caches are full.
type startSignal chan struct{}

// Start implements manager.Runnable.
func (s startSignal) Start(context.Context) error { close(s); return nil }

// NeedLeaderElection returns false, because the signal is also for a replica that is not the leader.
func (startSignal) NeedLeaderElection() bool { return false }
