package suite

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/shared/exercise/kube"
)

type deployment = appsv1.Deployment

// running is a manager that runs.
type running struct {
	cancel context.CancelFunc
	done   chan struct{}
	reads  *reads
}

// stop ends the manager and waits for it.
func (r running) stop() {
	r.cancel()
	<-r.done
}

// start starts a manager with the operator, as the user of e. The end of the behaviour stops it.
func (e *env) start() running {
	e.Event("the operator starts")
	config := kube.ReaderConfig(e.B)
	config.Impersonate = rest.ImpersonationConfig{UserName: e.user}
	if e.user != "" {
		config.Impersonate.Groups = []string{"system:serviceaccounts", "system:authenticated"}
	}
	config.Wrap(e.wire.transport)
	options := e.suite.project.Cache
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: e.suite.scheme, Cache: options, Logger: logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		// Each behaviour has a manager of its own in one process.
		Controller: controllerconfig.Controller{SkipNameValidation: new(true)},
	})
	e.must(err, "making a manager")
	observed := &reads{Client: mgr.GetClient(), count: map[client.ObjectKey]int{}}
	operator := e.equipped(e.suite.project.New(observed, mgr.GetScheme(), mgr.GetEventRecorder("lolcow-controller")))
	e.must(operator.SetupWithManager(mgr), "SetupWithManager returns an error")
	ctx, cancel := context.WithCancel(e.Context())
	m := running{cancel: cancel, done: make(chan struct{}), reads: observed}
	go func() {
		defer close(m.done)
		if err := mgr.Start(ctx); err != nil {
			e.Event("the manager ends: %v", err)
		}
	}()
	e.Cleanup(m.stop)
	return m
}

// reads is the client of an operator. It counts how often each Lolcow is read, which every reconciliation begins with.
type reads struct {
	client.Client

	mu    sync.Mutex
	count map[client.ObjectKey]int
}

// Get reads an object.
func (r *reads) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if gvk, err := r.GroupVersionKindFor(object); err == nil && gvk == lolcowKind {
		r.mu.Lock()
		r.count[key]++
		r.mu.Unlock()
	}
	return r.Client.Get(ctx, key, object, options...)
}

// of is how often the Lolcow of a name was read.
func (r *reads) of(key client.ObjectKey) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[key]
}
