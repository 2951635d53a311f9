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
)

// recording is a recorder with all that is behind it.
type recording struct {
	recorder    events.EventRecorder
	broadcaster events.EventBroadcaster
	sink        *sink
	cancel      context.CancelFunc
}

// record starts to record into the server. gate, unless nil, holds every request back until it is closed.
func record(ctx context.Context, client kubernetes.Interface, gate <-chan struct{}) (*recording, error) {
	return recordInto(ctx, &events.EventSinkImpl{Interface: client.EventsV1()}, gate)
}

func recordInto(ctx context.Context, to events.EventSink, gate <-chan struct{}) (*recording, error) {
	// What the broadcaster would log of lost Events goes nowhere: the lesson says it itself. An operator
	// leaves the logger alone.
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	r := &recording{sink: &sink{EventSink: to, gate: gate}, cancel: cancel}
	r.broadcaster = events.NewBroadcaster(r.sink)
	if err := r.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("starting to record Events: %w", err)
	}
	if _, err := r.broadcaster.StartEventWatcher(func(runtime.Object) {
		r.sink.note(func(t *totals) { t.arrived++ })
	}); err != nil {
		cancel()
		return nil, fmt.Errorf("watching what is recorded: %w", err)
	}
	// The scheme is for the reference: a typed object read by a clientset does not say its kind.
	r.recorder = r.broadcaster.NewRecorder(scheme.Scheme, controller).WithLogger(klog.Logger{})
	return r, nil
}

var _ events.EventRecorder = &recording{}

// Eventf records, and counts that it was called.
func (r *recording) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.sink.note(func(t *totals) { t.said++ })
	r.recorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// Close ends a recording and loses nothing that can still be written. Nothing may be recorded any more.
// client-go has no call for that, as an Event passes through goroutines that nobody can wait for: from Eventf
// to the queue, from the queue to the sink, and one for each request. Shutdown alone loses Events: it does
// not wait for what is on its way to the queue (that is dropped in silence), nor for the requests. So:
//
//  1. What was said has arrived in the queue, which a second watcher of the broadcaster counts, and the
//     requests have ended, which the sink counts. A pause stands for those that have not begun.
//  2. Shutdown ends the queue.
//  3. The context ends, and with it the goroutines that write counts and try again. Ended earlier, it ends
//     the requests, too.
//
// A server that does not answer must not keep a program from ending: ctx bounds the wait.
func (r *recording) Close(ctx context.Context) error {
	defer r.cancel()
	err := r.sink.rest(ctx)
	r.broadcaster.Shutdown()
	if err != nil {
		return fmt.Errorf("waiting for Events to be written: %w", err)
	}
	return nil
}

const (
	// quiet is how long nothing may have happened before a recording counts as written.
	quiet = 100 * time.Millisecond
	// patience is the same where something that was said has not arrived. It may never: what has no
	// reference or an unknown type is logged and dropped by Eventf.
	patience = time.Second
)

// sink counts what goes to the server.
type sink struct {
	events.EventSink
	gate <-chan struct{}

	mu     sync.Mutex
	totals totals
}

// totals are the calls of Eventf, those that have arrived in the queue, the requests that were begun, by
// kind, those of them that failed, and those that have not ended.
type totals struct{ said, arrived, creates, patches, failed, underWay int }

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

func (s *sink) do(ctx context.Context, count func(*totals), send func() (*eventsv1.Event, error)) (event *eventsv1.Event, err error) {
	s.note(func(t *totals) { t.underWay++; count(t) })
	defer func() {
		s.note(func(t *totals) {
			t.underWay--
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

func (s *sink) note(change func(*totals)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.totals)
}

func (s *sink) sent() totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// rest waits until all that was said has arrived, nothing is under way, and nothing new has begun for a while.
func (s *sink) rest(ctx context.Context) error {
	before, since := s.sent(), time.Now()
	return wait.PollUntilContextCancel(ctx, quiet/10, false, func(context.Context) (bool, error) {
		now := s.sent()
		if now != before || now.underWay > 0 {
			before, since = now, time.Now()
		}
		still := time.Since(since)
		return still >= patience || still >= quiet && now.arrived == now.said, nil
	})
}

// until polls for what is written in its own time.
func until(ctx context.Context, condition func() bool) error {
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
}
