package managed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"example.com/workbook/01-informers/internal/foo"
)

// flushTimeout bounds the wait for the last Events.
const flushTimeout = 2 * time.Second

// recorder is what mgr.GetEventRecorder would give, but that it can be waited for. The manager's own recorder
// takes away the context of the Events that are being written as soon as the manager ends
// (pkg/internal/recorder/recorder.go, Stop), and the Event of the last pass is lost.
type recorder struct {
	events.EventRecorder
	sink *sink
}

// newRecorder starts a recorder that writes until ctx ends.
func newRecorder(ctx context.Context, config *rest.Config, httpClient *http.Client, scheme *runtime.Scheme) (*recorder, error) {
	client, err := eventsv1client.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client for Events: %w", err)
	}
	s := &sink{EventSink: &events.EventSinkImpl{Interface: client}}
	broadcaster := events.NewBroadcaster(s)
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("starting to record Events: %w", err)
	}
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return &recorder{EventRecorder: broadcaster.NewRecorder(scheme, foo.FieldOwner), sink: s}, nil
}

// Eventf records an Event. No two of ours are alike, as each is about another resourceVersion: the
// broadcaster makes no series of them, and each is one Create.
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.sink.pending.Add(1)
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// flush waits until every Event is written or refused, or the time is up.
func (r *recorder) flush() {
	done := make(chan struct{})
	go func() {
		r.sink.pending.Wait()
		close(done)
	}()
	timeout := time.NewTimer(flushTimeout)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
	}
}

// sink counts the Events that are on their way.
type sink struct {
	events.EventSink
	pending sync.WaitGroup
}

// Create writes an Event. The broadcaster tries again unless the API server has answered.
func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	created, err := s.EventSink.Create(ctx, event)
	var answer *apierrors.StatusError
	if err == nil || errors.As(err, &answer) {
		s.pending.Done()
	}
	return created, err
}
