// Command manager is the Goop operator.
package main

import (
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/controller"
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
	metricsAddress, probeAddress string
	leaderElect                  bool
	leaderElectionNamespace      string
	images                       controller.Images
	allowHostAccess              bool
	concurrency                  int
}

func main() {
	var o options
	flag.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "Where metrics are served, over HTTPS, to callers with the right to get /metrics. 0 turns them off.")
	flag.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served.")
	flag.BoolVar(&o.leaderElect, "leader-elect", false, "Work only while holding the lease, so that of several replicas one is at work.")
	flag.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "", "The namespace of the lease. Outside a cluster it must be given.")
	flag.StringVar(&o.images.Operator, "operator-image", os.Getenv("RELATED_IMAGE_OPERATOR"), "This operator's own image: it holds the program that each worker's pod runs. Default: the variable RELATED_IMAGE_OPERATOR.")
	flag.StringVar(&o.images.Worker, "worker-image", os.Getenv("RELATED_IMAGE_WORKER"), "The image of workers of Goops whose spec names none. Default: the variable RELATED_IMAGE_WORKER.")
	flag.BoolVar(&o.allowHostAccess, "allow-host-access", false, "Grant what Goops ask for in spec.host: the files, processes and network of nodes. Whoever may create Goops then owns the nodes.")
	flag.IntVar(&o.concurrency, "max-concurrent-reconciles", 4, "How many Goops are worked on at once.")
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
	if o.images.Operator == "" {
		return errors.New("no image for the operator's part of a worker: give --operator-image or set RELATED_IMAGE_OPERATOR")
	}
	if o.images.Worker == "" {
		return errors.New("no image for workers: give --worker-image or set RELATED_IMAGE_WORKER")
	}
	// It has no limit on requests a second: the API server's own fairness sees to that.
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}

	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Cache:  controller.CacheOptions(),
		// A pass reads what the pass before it wrote, never an older state. Experimental in
		// controller-runtime 0.25; without it all still converges, with more writes.
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Controller:                    config.Controller{ReconciliationTimeout: time.Minute},
		Metrics:                       server.Options{BindAddress: o.metricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization},
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "goop-operator.goop.example.com",
		LeaderElectionNamespace:       o.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		// 2 s less than the default. A leader that the API server does not answer goes on working until it has
		// waited for RetryPeriod (2 s), tried to renew the lease for RenewDeadline, and tried to release it for
		// half as long: all that has to be over before the lease is, after 15 s, or two replicas work at once.
		RenewDeadline: new(8 * time.Second),
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}

	ctx := ctrl.SetupSignalHandler()
	reconciler := controller.NewGoopReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("goop-controller"), o.images)
	reconciler.AllowHostAccess = o.allowHostAccess
	if err := reconciler.SetupWithManager(ctx, mgr, o.concurrency); err != nil {
		return fmt.Errorf("creating the controller of Goop: %w", err)
	}
	// +kubebuilder:scaffold:builder

	if err := errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping)); err != nil {
		return fmt.Errorf("adding probes: %w", err)
	}
	return mgr.Start(ctx)
}
