package glass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
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

// Options configure the informer whose steps the page shows.
type Options struct {
	Config *rest.Config
	// Resource is what is watched, from Resolve.
	Resource *apimeta.RESTMapping
	// Namespace is the one to watch. Empty: all namespaces.
	Namespace string
	// Workers is how many keys are processed at once, WorkTime how long one takes. FailEvery: with N, the work fails every
	// Nth time. 0: never.
	Workers   int
	WorkTime  time.Duration
	FailEvery int
	// Paused: the informer starts paused.
	Paused bool
	// AnyHost accepts any Host header: for addresses that are not loopback.
	AnyHost bool
	// Limits bound the memory. Zero: DefaultLimits.
	Limits Limits
	// Log may be nil.
	Log *slog.Logger
}

func (o Options) resource() Resource {
	gvr := o.Resource.Resource
	return Resource{
		Name: gvr.Resource, Group: gvr.Group, Version: gvr.Version,
		Namespaced: Namespaced(o.Resource), Namespace: o.Namespace, MetadataOnly: secret(gvr),
		Workers: o.Workers, FailEvery: o.FailEvery,
	}
}

// New returns the informer and its server. Run runs it.
func New(options Options) (*Server, error) {
	if options.Limits == (Limits{}) {
		options.Limits = DefaultLimits()
	}
	if !Namespaced(options.Resource) {
		options.Namespace = ""
	}
	source, err := source(options)
	if err != nil {
		return nil, err
	}
	probe := &handmade.Probe{}
	if options.Paused {
		probe.Gate.Pause()
	}
	hub := newHub(clock.RealClock{}, options.Limits, &probe.Gate)
	probe.Observe = hub.observe

	name := options.Resource.Resource.GroupResource().String()
	informer := handmade.New(handmade.Options{
		Name: name, ListerWatcher: source, Transform: strip(secret(options.Resource.Resource)), Probe: probe,
	})
	// Slow enough to see it: 0.5 s after the first failure, then twice as long each time.
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](500*time.Millisecond, 30*time.Second)
	queue := handmade.NewWorkQueue(name, limiter, probe)
	informer.AddHandler(handmade.Enqueue(queue))
	ended, end := context.WithCancel(context.Background())
	s := &Server{
		hub: hub, gate: &probe.Gate, informer: informer,
		workers:  &handmade.Workers{Queue: queue, Count: options.Workers, Work: work(options), Probe: probe},
		resource: options.resource(),
		clients:  make(chan struct{}, options.Limits.Clients), ended: ended.Done(), end: end,
	}
	s.handler = guarded(s.routes(), options.AnyHost, cmp.Or(options.Log, slog.New(slog.DiscardHandler)))
	return s, nil
}

// secret reports whether the content of a resource is confidential: of Secrets, and of custom resources with such a name.
func secret(resource schema.GroupVersionResource) bool {
	return strings.Contains(resource.Resource, "secret")
}

// source lists and watches whole objects, but only the metadata of secrets: the API server does not send their data.
func source(options Options) (cache.ListerWatcher, error) {
	if secret(options.Resource.Resource) {
		client, err := metadata.NewForConfig(options.Config)
		if err != nil {
			return nil, fmt.Errorf("creating a metadata client: %w", err)
		}
		return handmade.ListWatch(client.Resource(options.Resource.Resource).Namespace(options.Namespace)), nil
	}
	client, err := dynamic.NewForConfig(options.Config)
	if err != nil {
		return nil, fmt.Errorf("creating a dynamic client: %w", err)
	}
	return handmade.ListWatch(client.Resource(options.Resource.Resource).Namespace(options.Namespace)), nil
}

// strip removes managedFields, and the annotations of secrets, before an object is queued: kubectl apply and similar tools
// copy the whole object into an annotation (kubectl.kubernetes.io/last-applied-configuration).
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

// errSimulated is the error of the work that FailEvery makes fail.
var errSimulated = errors.New("a simulated failure")

// work simulates work: it takes WorkTime, and changes nothing in the cluster.
func work(options Options) func(context.Context, cache.ObjectName) error {
	var done atomic.Int64
	return func(ctx context.Context, _ cache.ObjectName) error {
		select {
		case <-time.After(options.WorkTime):
		case <-ctx.Done():
			return ctx.Err()
		}
		if options.FailEvery > 0 && done.Add(1)%int64(options.FailEvery) == 0 {
			return errSimulated
		}
		return nil
	}
}
