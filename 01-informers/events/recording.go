package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/internal/lesson"
)

// recording is a recorder with its broadcaster and its sink.
type recording struct {
	recorder    events.EventRecorder
	broadcaster events.EventBroadcaster
	sink        *sink
	cancel      context.CancelFunc
}

// record starts a recording to the server. gate, if it is not nil, blocks every request until it is closed.
func record(ctx context.Context, client kubernetes.Interface, gate <-chan struct{}) (*recording, error) {
	return recordInto(ctx, &events.EventSinkImpl{Interface: client.EventsV1()}, gate)
}

// recordInto starts a recording to any sink.
func recordInto(ctx context.Context, to events.EventSink, gate <-chan struct{}) (*recording, error) {
	// The broadcaster logs lost Events. The lesson prints them itself, and so discards the log. An operator
	// keeps the logger.
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	r := &recording{sink: &sink{EventSink: to, gate: gate}, cancel: cancel}
	r.broadcaster = events.NewBroadcaster(r.sink)
	if err := r.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("starting the broadcaster: %w", err)
	}
	if _, err := r.broadcaster.StartEventWatcher(func(runtime.Object) {
		r.sink.count(func(t *totals) { t.queued++ })
	}); err != nil {
		cancel()
		return nil, fmt.Errorf("watching the broadcaster: %w", err)
	}
	// The recorder needs the scheme for the reference, because an object from a typed client has no kind.
	r.recorder = r.broadcaster.NewRecorder(scheme.Scheme, controller).WithLogger(klog.Logger{})
	return r, nil
}

var _ events.EventRecorder = &recording{}

// Eventf records an Event, and counts the call.
func (r *recording) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.sink.count(func(t *totals) { t.called++ })
	r.recorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// Close ends a recording without losing Events that can still be written. Eventf must not be called any more.
// client-go has no function for that: an Event passes through goroutines for which a caller cannot wait, from
// Eventf to the queue, from the queue to the sink, and one for each request. Shutdown alone loses Events. It
// drops those that are not yet in the queue, and does not wait for requests. So Close:
//
//  1. waits until all Events are in the queue, which a second watcher of the broadcaster counts, and until the
//     requests have ended, which the sink counts. A pause covers requests that have not started.
//  2. calls Shutdown, which ends the queue.
//  3. cancels the context, and with it the goroutines that write counts and retry. Cancelled earlier, it would
//     cancel the requests too.
//
// ctx bounds the wait, because a server that does not respond must not keep a program from ending.
func (r *recording) Close(ctx context.Context) error {
	defer r.cancel()
	err := r.sink.drain(ctx)
	r.broadcaster.Shutdown()
	if err != nil {
		return fmt.Errorf("waiting for Events to be written: %w", err)
	}
	return nil
}

const (
	// quiet is how long no count may have changed before all Events count as written.
	quiet = 100 * time.Millisecond
	// patience is the same if an Event is not in the queue. It may never be: Eventf logs and drops an Event
	// that has no reference or an unknown type.
	patience = time.Second
)

// sink counts requests to the server.
type sink struct {
	events.EventSink
	gate <-chan struct{}

	mu     sync.Mutex
	totals totals
}

// totals are the calls of Eventf, the Events that were queued, the requests by verb, those that failed, and those
// that have not ended.
type totals struct{ called, queued, creates, patches, failed, inFlight int }

// Create writes a new Event.
func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.do(ctx, func(t *totals) { t.creates++ }, func() (*eventsv1.Event, error) {
		return s.EventSink.Create(ctx, event)
	})
}

// Patch writes the count of a series.
func (s *sink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.do(ctx, func(t *totals) { t.patches++ }, func() (*eventsv1.Event, error) {
		return s.EventSink.Patch(ctx, event, data)
	})
}

func (s *sink) do(ctx context.Context, verb func(*totals), send func() (*eventsv1.Event, error)) (event *eventsv1.Event, err error) {
	s.count(func(t *totals) { t.inFlight++; verb(t) })
	defer func() {
		s.count(func(t *totals) {
			t.inFlight--
			if err != nil {
				t.failed++
			}
		})
	}()
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return send()
}

func (s *sink) count(change func(*totals)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.totals)
}

func (s *sink) sent() totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// until waits until the condition is met and no request is in flight.
func (s *sink) until(ctx context.Context, condition func(totals) bool) error {
	return lesson.Until(ctx, "the requests have ended", func() bool {
		t := s.sent()
		return t.inFlight == 0 && condition(t)
	})
}

// drain waits until all Events were queued, no request is in flight, and no count has changed for a while.
func (s *sink) drain(ctx context.Context) error {
	before, since := s.sent(), time.Now()
	return wait.PollUntilContextCancel(ctx, quiet/10, false, func(context.Context) (bool, error) {
		now := s.sent()
		if now != before || now.inFlight > 0 {
			before, since = now, time.Now()
		}
		idle := time.Since(since)
		return idle >= patience || idle >= quiet && now.queued == now.called, nil
	})
}
