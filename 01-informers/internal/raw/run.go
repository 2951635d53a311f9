package raw

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/operator"
)

// expiredTolerance is how long after the lease has expired a leader still counts as healthy.
const expiredTolerance = 20 * time.Second

var _ operator.Run = Run

// Run runs the controller until ctx ends and everything it started has ended. It returns nil after a graceful shutdown, and an
// error if it could not start, a server failed or it lost the lease.
func Run(ctx context.Context, config *rest.Config, options operator.Options) error {
	identity, err := foo.NewIdentity()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = foo.UserAgent("raw", identity)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return instrumented{next} })
	apiServer, err := newClients(config)
	if err != nil {
		return err
	}
	if err := apiServer.check(ctx); err != nil {
		return err
	}

	r := &replica{apiServer: apiServer, options: options, lead: unelected}
	r.watchdog = leaderelection.NewLeaderHealthzAdaptor(expiredTolerance)
	if options.LeaderElect {
		lock, err := operator.NewLock(config, options, identity)
		if err != nil {
			return err
		}
		r.lead = (&election{lock, options, r.watchdog}).lead
	}
	return r.run(ctx)
}

// replica is one run of the controller.
type replica struct {
	apiServer *clients
	options   operator.Options
	watchdog  *leaderelection.HealthzAdaptor
	// lead calls work while this replica is the leader: see election.lead.
	lead func(ctx context.Context, work func(ctx, leading context.Context)) error
}

// unelected is election.lead without leader election.
func unelected(ctx context.Context, work func(ctx, leading context.Context)) error {
	work(ctx, context.WithoutCancel(ctx))
	return nil
}

// run starts the parts in the order in which they need each other, reconciles while it is the leader, and stops them in the
// reverse order.
func (r *replica) run(ctx context.Context) error {
	// The informers and the recorder run until the last reconciliation has ended.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	recorder, err := operator.NewRecorder(background, r.apiServer.kubernetes.EventsV1(), scheme)
	if err != nil {
		return err
	}
	defer recorder.Stop()
	factories := newFactories(ctx, r.apiServer)
	defer func() {
		end()
		factories.shutdown()
	}()
	c := r.controller(recorder)
	defer c.queue.ShutDown()
	if err := c.watch(factories, klog.FromContext(ctx)); err != nil {
		return err
	}

	// A server that fails stops the other parts, as the end of ctx does.
	outer := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	servers := &servers{fail: fail, idle: idleTimeout, request: requestTimeout}
	defer servers.stop()
	if err := r.serve(ctx, servers, c); err != nil {
		return err
	}

	// A replica that is not the leader fills its caches too, so that it can begin at once.
	factories.start(background)
	if !c.waitForSync(ctx) {
		return failure(outer, ctx)
	}
	err = r.lead(ctx, func(ctx, leading context.Context) {
		(&loop{queue: c.queue, reconcile: c.reconcile}).run(ctx, leading, r.options.Workers)
		flushing, cancel := context.WithTimeout(leading, operator.FlushTimeout)
		defer cancel()
		recorder.Flush(flushing)
	})
	if err != nil {
		return err
	}
	return failure(outer, ctx)
}

func (r *replica) controller(recorder events.EventRecorder) *controller {
	return &controller{
		foos: r.apiServer.foos.FooV1alpha1(), deployments: r.apiServer.kubernetes.AppsV1(), recorder: recorder,
		queue: newQueue(), attempts: foo.NewAttempts(r.options.MaxRetries, clock.RealClock{}),
		clock: clock.RealClock{}, image: r.options.Image,
	}
}

// serve starts the servers of the probes and of the metrics.
func (r *replica) serve(ctx context.Context, servers *servers, c *controller) error {
	if err := servers.start(ctx, "probes", r.options.ProbeAddress, nil, probes(r.watchdog, c.synced)); err != nil {
		return err
	}
	if r.options.MetricsAddress == "0" {
		return nil
	}
	secure, err := selfSigned()
	if err != nil {
		return err
	}
	filter := newAuthFilter(r.apiServer.kubernetes, clock.RealClock{})
	return servers.start(ctx, "metrics", r.options.MetricsAddress, secure, metricsHandler(filter))
}

// failure is why the parts ended although outer has not: nil if outer has ended.
func failure(outer, inner context.Context) error {
	if outer.Err() == nil {
		return context.Cause(inner)
	}
	return nil
}
