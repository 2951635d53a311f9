package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/faults/internal/feed"
)

// stepLimit is how long one step may take, on the slowest machine. A step that takes longer does not end.
var stepLimit = time.Minute

// process is one process of the operator: a manager with its cache and controllers.
type process struct {
	trial  *trial
	cancel context.CancelFunc
	ended  chan error
	stop   func() error // ends it and returns when its goroutines have ended

	requests sync.Mutex // one request at a time
	dead     atomic.Bool
	parked   chan int      // a request waits, for so many steps
	resume   chan struct{} // it goes on

	mu         sync.Mutex
	queues     []*feed.Queue
	feeds      []*feeding
	delivering atomic.Bool
}

// startProcess starts one, whose cache begins so many events ago.
func (tr *trial) startProcess(ctx context.Context, behind int) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &process{trial: tr, cancel: cancel, ended: make(chan error, 1), parked: make(chan int, 1), resume: make(chan struct{})}
	p.stop = sync.OnceValue(p.end)
	operator := tr.suite.Operator
	options := operator.Cache
	options.NewInformer = func(_ toolscache.ListerWatcher, sample runtime.Object, _ time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return p.newInformer(sample, indexers, behind)
	}
	cfg := tr.server.through(&transport{trial: tr, by: func() string { return operatorName }, process: p})
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:         operator.Scheme,
		Cache:          options,
		Client:         client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(tr.readYourWrites)}},
		NewClient:      p.newClient,
		MapperProvider: tr.server.mapperProvider(),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Logger:         logr.Discard(),
		Controller:     config.Controller{SkipNameValidation: new(true), ReconciliationTimeout: stepLimit},
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	counted := &countingManager{Manager: mgr}
	env := Env{Clock: tr.state.Clock, Recorder: &recorder{process: p}, Queue: controller.Options{
		NewQueue: p.newQueue, MaxConcurrentReconciles: 1, SkipNameValidation: new(true),
		LogConstructor: func(*reconcile.Request) logr.Logger { return logr.Discard() },
	}}
	if err := operator.Setup(ctx, counted, env); err != nil {
		cancel()
		return nil, fmt.Errorf("setting up the operator: %w", err)
	}
	go func() { p.ended <- mgr.Start(ctx) }()
	if err := p.awaitWorkers(counted.controllers); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	for _, queue := range p.queues {
		queue.Sort()
	}
	return p, nil
}

// awaitWorkers waits until the worker of each controller waits for its first key.
func (p *process) awaitWorkers(count int) error {
	limit := time.After(stepLimit)
	waiting := map[*feed.Queue]bool{}
	for len(waiting) < count {
		select {
		case err := <-p.ended:
			p.ended <- err
			return fmt.Errorf("the manager ended: %w", err)
		case <-limit:
			return fmt.Errorf("%d of %d workers have started", len(waiting), count)
		case <-time.After(100 * time.Microsecond):
		}
		p.mu.Lock()
		queues := slices.Clone(p.queues)
		p.mu.Unlock()
		for _, queue := range queues {
			select {
			case <-queue.Parked():
				waiting[queue] = true
			default:
			}
		}
	}
	return nil
}

// die is the end of the process, from inside: no request of it succeeds any more.
func (p *process) die() { p.dead.Store(true) }

func (p *process) end() error {
	p.die()
	p.cancel()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(stepLimit):
		return errors.New("the manager does not end")
	}
}

// pause holds the request that is being made, until its time has come.
func (p *process) pause(steps int) {
	p.parked <- steps
	<-p.resume
}

func (p *process) newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	queue := feed.NewQueue(name, limiter, p.trial.state.Clock.Now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues = append(p.queues, queue)
	slices.SortFunc(p.queues, func(a, b *feed.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queue
}

// newInformer returns an informer for the type of a sample. There is one for each type.
func (p *process) newInformer(sample runtime.Object, indexers toolscache.Indexers, behind int) *feed.Informer {
	fed, err := p.newFeeding(sample, behind)
	if err != nil {
		p.trial.alarm("harness", fmt.Sprintf("%T", sample), err.Error())
		return feed.NewInformer(indexers, func() []client.Object { return nil })
	}
	fed.Informer = feed.NewInformer(indexers, fed.begin)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.feeds = append(p.feeds, fed)
	slices.SortFunc(p.feeds, func(a, b *feeding) int { return cmp.Compare(a.resource.String(), b.resource.String()) })
	return fed.Informer
}

// newClient is the manager's client, but that each read is known before it is made: where the operator waits for what it
// wrote, that is delivered first.
func (p *process) newClient(cfg *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.New(cfg, options)
	return &readingClient{Client: c, process: p}, err
}

type readingClient struct {
	client.Client
	process *process
}

func (c *readingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if !(&client.GetOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
		c.process.beforeRead(object)
	}
	return c.Client.Get(ctx, key, object, options...)
}

func (c *readingClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if !(&client.ListOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
		c.process.beforeRead(list)
	}
	return c.Client.List(ctx, list, options...)
}

// countingManager counts the controllers that are added to a manager.
type countingManager struct {
	manager.Manager
	controllers int
}

func (m *countingManager) Add(runnable manager.Runnable) error {
	if _, ok := runnable.(reconcile.Reconciler); ok {
		m.controllers++
	}
	return m.Manager.Add(runnable)
}

// recorder records Events at once, while its process lives.
type recorder struct{ process *process }

func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	if r.process.dead.Load() {
		return
	}
	on := fmt.Sprintf("%T", regarding)
	if object, err := apimeta.Accessor(regarding); err == nil {
		on = object.GetName()
	}
	r.process.trial.record(Event{Type: eventType, Reason: reason, On: on}, fmt.Sprintf(note, args...))
}

// selectorOf returns the selector of labels that the cache has for a kind.
func selectorOf(options cache.Options, scheme *runtime.Scheme, gvk schema.GroupVersionKind) (labels.Selector, error) {
	for object, by := range options.ByObject {
		own, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, err
		}
		if own != gvk {
			continue
		}
		if by.Field != nil || len(by.Namespaces) > 0 {
			return nil, fmt.Errorf("the cache selects %s by more than labels: that is not fed yet", gvk.Kind)
		}
		if by.Label != nil {
			return by.Label, nil
		}
	}
	if options.DefaultLabelSelector != nil {
		return options.DefaultLabelSelector, nil
	}
	return labels.Everything(), nil
}
