package raw

import (
	"context"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/operator"
)

const (
	// flushTimeout is the longest to wait for the Events of the last passes.
	flushTimeout = 2 * time.Second

	// expiredTolerance is for how long after the lease ran out a leader still counts as healthy.
	expiredTolerance = 20 * time.Second
)

var _ operator.Run = Run

// Run runs the controller until ctx ends and everything it started has ended. It returns nil after an orderly
// end, and an error where it could not start, where a server failed or where it lost the lease.
func Run(ctx context.Context, config *rest.Config, options operator.Options) error {
	identity, err := foo.NewIdentity()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = foo.UserAgent("raw", identity)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return measured{next} })
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
		election, err := newElection(config, identity, options, r.watchdog)
		if err != nil {
			return err
		}
		r.lead = election.lead
	}
	return r.run(ctx)
}

// replica is one run of the controller, which may be one of several.
type replica struct {
	apiServer *clients
	options   operator.Options
	watchdog  *leaderelection.HealthzAdaptor
	// lead calls work when it is this replica's turn: see election.lead.
	lead func(ctx context.Context, work func(ctx, leading context.Context)) error
}

// unelected is election.lead for a replica that is alone.
func unelected(ctx context.Context, work func(ctx, leading context.Context)) error {
	work(ctx, context.WithoutCancel(ctx))
	return nil
}

// run starts the parts in the order in which they need each other, works while it leads, and ends them in the
// reverse order.
func (r *replica) run(ctx context.Context) error {
	// What passes need goes on after ctx, until the last pass is over.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	recorder, err := newRecorder(background, r.apiServer.kubernetes.EventsV1())
	if err != nil {
		return err
	}
	defer recorder.stop()
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

	// A server that fails ends the rest as ctx does, in order.
	outer := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	servers := &servers{fail: fail, idle: idleTimeout}
	defer servers.stop()
	if err := r.serve(ctx, servers, c); err != nil {
		return err
	}

	// Also a replica that is not the leader has its caches full, so that it can begin at once.
	factories.start(background)
	if !c.waitForSync(ctx) {
		return failure(outer, ctx)
	}
	err = r.lead(ctx, func(ctx, leading context.Context) {
		(&loop{queue: c.queue, reconcile: c.reconcile}).run(ctx, leading, r.options.Workers)
		flushing, cancel := context.WithTimeout(leading, flushTimeout)
		defer cancel()
		recorder.flush(flushing)
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

// serve opens the ports for the kubelet and for who may read the metrics.
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
	gate := newGate(r.apiServer.kubernetes, clock.RealClock{})
	return servers.start(ctx, "metrics", r.options.MetricsAddress, secure, metricsHandler(gate))
}

// failure is why the parts ended before they were told to: nil if they were told.
func failure(outer, inner context.Context) error {
	if outer.Err() == nil {
		return context.Cause(inner)
	}
	return nil
}
