package handmade

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// observeListerWatcher reports what the API server sends, before the reflector receives it.
func observeListerWatcher(inner cache.ListerWatcher, probe *Probe) cache.ListerWatcher {
	o := &observedListerWatcher{ListerWatcherWithContext: cache.ToListerWatcherWithContext(inner), probe: probe}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  o.list,
		WatchFuncWithContext: o.watch,
	}, inner)
}

type observedListerWatcher struct {
	cache.ListerWatcherWithContext
	probe *Probe
	// listed counts the objects in the pages of a list.
	listed int
}

// list requests a list or a page of one.
func (o *observedListerWatcher) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Continue == "" {
		o.listed = 0
		o.begin(false)
	}
	list, err := o.ListWithContext(ctx, options)
	if err != nil {
		o.listFailed(err)
		return nil, err
	}
	_ = apimeta.EachListItem(list, func(object runtime.Object) error {
		o.listed++
		event := about(StageList, Listed, object)
		event.Initial = o.initial()
		o.probe.Observe(event)
		return nil
	})
	if page, err := apimeta.ListAccessor(list); err == nil && page.GetContinue() == "" {
		o.probe.Observe(Event{Stage: StageList, Type: Ended, Count: o.listed, ResourceVersion: page.GetResourceVersion(), Initial: o.initial()})
	}
	return list, nil
}

// begin waits for the gate before a list is requested.
func (o *observedListerWatcher) begin(streamed bool) {
	event := Event{Stage: StageList, Type: Started, Streamed: streamed, Initial: o.initial()}
	o.probe.Gate.wait(event, nil, func(t *traffic) { t.listing = true })
	o.probe.Observe(event)
}

func (o *observedListerWatcher) listFailed(err error) {
	o.probe.Gate.note(func(t *traffic) { t.listing = false })
	o.probe.Observe(Event{Stage: StageList, Type: Failed, Err: err, Initial: o.initial()})
}

func (o *observedListerWatcher) initial() bool { return !o.probe.populated.Load() }

// watch starts a watch. One with initial events is a streaming list first, and then the watch.
func (o *observedListerWatcher) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	streamsList := options.SendInitialEvents != nil && *options.SendInitialEvents
	if streamsList {
		o.begin(true)
	}
	o.probe.Gate.note(func(t *traffic) { t.watched = 0 })
	inner, err := o.WatchWithContext(ctx, options)
	switch {
	case err != nil && streamsList:
		o.listFailed(err)
		return nil, err
	case err != nil:
		o.probe.Observe(Event{Stage: StageWatch, Type: Failed, Err: err})
		return nil, err
	case !streamsList:
		o.probe.Observe(Event{Stage: StageWatch, Type: Started, ResourceVersion: options.ResourceVersion})
	}
	stream := newStream(inner, o.probe)
	stream.listing, stream.initial = streamsList, o.initial()
	go stream.pump()
	return stream, nil
}

// stream is a watch that reports its events, and waits for the gate before each one. While it waits, no more events are
// read.
type stream struct {
	inner   watch.Interface
	probe   *Probe
	listing bool // the initial events of a streaming list are not complete
	initial bool
	count   int
	out     chan watch.Event
	stopped chan struct{}
	stop    sync.Once
}

func newStream(inner watch.Interface, probe *Probe) *stream {
	return &stream{inner: inner, probe: probe, out: make(chan watch.Event), stopped: make(chan struct{})}
}

func (s *stream) ResultChan() <-chan watch.Event { return s.out }

func (s *stream) Stop() {
	s.stop.Do(func() {
		close(s.stopped)
		s.inner.Stop()
	})
}

func (s *stream) pump() {
	defer close(s.out)
	for event := range s.inner.ResultChan() {
		if s.isItem(event) && !s.listing {
			s.probe.Gate.wait(about(StageWatch, string(event.Type), event.Object), nil, func(t *traffic) { t.watched++ })
		}
		select {
		case <-s.stopped: // while it waited
			s.probe.Gate.note(func(t *traffic) { t.watched = 0 })
			return
		default:
		}
		s.report(event)
		select {
		case s.out <- event:
		case <-s.stopped:
			return
		}
	}
	s.probe.Gate.note(func(t *traffic) { t.watched, t.listing = 0, t.listing && !s.listing })
	if s.listing {
		s.probe.Observe(Event{Stage: StageList, Type: Failed, Err: fmt.Errorf("the watch ended before the list was complete"), Initial: s.initial})
		return
	}
	s.probe.Observe(Event{Stage: StageWatch, Type: Ended})
}

func (s *stream) isItem(event watch.Event) bool {
	return event.Type == watch.Added || event.Type == watch.Modified || event.Type == watch.Deleted
}

func (s *stream) report(event watch.Event) {
	switch {
	case event.Type == watch.Error:
		// FromObject returns an error with the Status, and without content of an object.
		s.probe.Observe(Event{Stage: StageWatch, Type: string(event.Type), Err: apierrors.FromObject(event.Object)})
	case event.Type == watch.Bookmark:
		s.bookmark(event.Object)
	case s.listing:
		s.count++
		item := about(StageList, string(event.Type), event.Object)
		item.Initial = s.initial
		s.probe.Observe(item)
	default:
		s.probe.Observe(about(StageWatch, string(event.Type), event.Object))
	}
}

// bookmark reports the resourceVersion of the watch. The first bookmark of a streaming list also ends the list.
func (s *stream) bookmark(object runtime.Object) {
	mark, err := apimeta.Accessor(object)
	if err != nil {
		return
	}
	version := mark.GetResourceVersion()
	if s.listing && mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		s.listing = false
		s.probe.Observe(Event{Stage: StageList, Type: Ended, Count: s.count, ResourceVersion: version, Initial: s.initial})
		s.probe.Observe(Event{Stage: StageWatch, Type: Started, ResourceVersion: version})
		return
	}
	s.probe.Observe(Event{Stage: StageWatch, Type: string(watch.Bookmark), ResourceVersion: version})
}
