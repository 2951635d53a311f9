package glass

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/internal/handmade"
)

// Options say what the glass informer works on, and how.
type Options struct {
	// Config is for the cluster.
	Config *rest.Config
	// Found is the resource to watch, as Resolve returned it.
	Found Found
	// Namespace to watch; empty for all.
	Namespace string
	// Workers is how many keys are worked on at once, WorkTime how long one takes. FailEvery makes every Nth
	// piece of work fail; 0 is never.
	Workers   int
	WorkTime  time.Duration
	FailEvery int
	// Paused: nothing happens before the first step.
	Paused bool
	// AnyHost answers whatever the Host header says: for addresses that are not loopback.
	AnyHost bool
	// Limits bound the memory; DefaultLimits where it is zero.
	Limits Limits
	// Clock is the real one where it is nil.
	Clock clock.WithTicker
	// Log may be nil.
	Log *slog.Logger
}

func (o Options) resource() Resource {
	resource := Resource{
		Name: o.Found.Resource.Resource, Group: o.Found.Resource.Group, Version: o.Found.Resource.Version, Kind: o.Found.Kind,
		Namespaced: o.Found.Namespaced, Namespace: o.Namespace, MetadataOnly: secret(o.Found.Resource),
		Workers: o.Workers, WorkTimeMs: o.WorkTime.Milliseconds(), FailEvery: o.FailEvery,
	}
	return resource
}

func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return discard
	}
	return o.Log
}

// New assembles the informer and its server. Nothing runs yet.
func New(options Options) (*Server, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Limits == (Limits{}) {
		options.Limits = DefaultLimits()
	}
	if !options.Found.Namespaced {
		options.Namespace = ""
	}
	source, err := source(options)
	if err != nil {
		return nil, err
	}
	gate := &handmade.Gate{}
	if options.Paused {
		gate.Pause()
	}
	hub := newHub(options.Clock, options.Limits, gate)
	return newServer(options, hub, newPipeline(options, source, &handmade.Probe{Observe: hub.observe, Gate: gate}))
}

// secret tells whether the content of a resource must not be seen. Going by the name covers Secrets, and also
// what other projects store under such a name.
func secret(resource schema.GroupVersionResource) bool {
	return strings.Contains(resource.Resource, "secret")
}

// source lists and watches whole objects, but of secrets only the metadata: their data stays in the API server.
func source(options Options) (cache.ListerWatcher, error) {
	if secret(options.Found.Resource) {
		client, err := metadata.NewForConfig(options.Config)
		if err != nil {
			return nil, fmt.Errorf("making a metadata client: %w", err)
		}
		return handmade.Metadata(client, options.Found.Resource, options.Namespace), nil
	}
	client, err := dynamic.NewForConfig(options.Config)
	if err != nil {
		return nil, fmt.Errorf("making a dynamic client: %w", err)
	}
	return handmade.Dynamic(client, options.Found.Resource, options.Namespace), nil
}

// strip takes away what is not to be seen, before the object is queued. Of a secret's metadata these are the
// annotations: kubectl apply, and tools like it, copy the whole object into one
// (kubectl.kubernetes.io/last-applied-configuration).
func strip(secret bool) cache.TransformFunc {
	return func(obj any) (any, error) {
		object, ok := obj.(metav1.Object)
		if !ok {
			return obj, nil
		}
		object.SetManagedFields(nil)
		if secret {
			object.SetAnnotations(nil)
		}
		return obj, nil
	}
}

// pipeline is the informer, its work queue and its workers.
type pipeline struct {
	informer *handmade.Informer
	workers  *handmade.Workers
}

func newPipeline(options Options, source cache.ListerWatcher, probe *handmade.Probe) *pipeline {
	name := options.Found.Resource.GroupResource().String()
	informer := handmade.New(handmade.Options{
		Name: name, ListerWatcher: source, Transform: strip(secret(options.Found.Resource)), Probe: probe,
	})
	// Slow enough to be watched: 0.5 s after the first failure, then twice as long each time.
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](500*time.Millisecond, 30*time.Second)
	queue := handmade.NewWorkQueue(name, limiter, options.Clock, probe)
	informer.AddHandler(handmade.Enqueue(queue))
	return &pipeline{informer: informer, workers: &handmade.Workers{
		Queue: queue, Count: options.Workers, Work: work(options), Probe: probe,
	}}
}

// errPretended is what every FailEvery-th piece of work fails with.
var errPretended = errors.New("this piece of work was told to fail")

// work takes its time, as real work would, and changes nothing in the cluster.
func work(options Options) func(context.Context, cache.ObjectName) error {
	var done atomic.Int64
	return func(ctx context.Context, _ cache.ObjectName) error {
		if options.WorkTime > 0 {
			timer := options.Clock.NewTimer(options.WorkTime)
			defer timer.Stop()
			select {
			case <-timer.C():
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if options.FailEvery > 0 && done.Add(1)%int64(options.FailEvery) == 0 {
			return errPretended
		}
		return nil
	}
}

// run runs all of it. The workers begin when the handler was told of the whole first list, as in every controller.
func (p *pipeline) run(ctx context.Context, running *sync.WaitGroup, synced func()) {
	running.Go(func() { p.informer.Run(ctx) })
	if !cache.WaitFor(ctx, "", p.informer.HasSyncedChecker()) {
		return
	}
	synced()
	p.workers.Run(ctx)
}
