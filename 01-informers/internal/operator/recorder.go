package operator

import (
	"context"
	"errors"
	"fmt"
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

// FlushTimeout is how long an operator that ends waits for the Events of the last reconciliations.
const FlushTimeout = 2 * time.Second

// Recorder records Events through client-go's broadcaster, which writes them in the background. The broadcaster has no way to
// wait for them, and a manager's own recorder cancels the writes as soon as the manager ends (Stop in
// pkg/internal/recorder/recorder.go): the Event of the last reconciliation is lost.
type Recorder struct {
	events.EventRecorder
	sink *sink
	// Stop ends the broadcaster.
	Stop func()
}

// NewRecorder starts a recorder that writes until ctx ends. The scheme has the kinds that Events are about.
func NewRecorder(ctx context.Context, client eventsv1client.EventsV1Interface, scheme *runtime.Scheme) (*Recorder, error) {
	s := &sink{EventSink: &events.EventSinkImpl{Interface: client}}
	broadcaster := events.NewBroadcaster(s)
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("starting the recorder of Events: %w", err)
	}
	return &Recorder{EventRecorder: broadcaster.NewRecorder(scheme, foo.FieldOwner), sink: s, Stop: broadcaster.Shutdown}, nil
}

// Eventf records one Event. Each is about a status that was just written, and so about another resourceVersion: no two are
// alike, and the broadcaster never makes a series of them, of which it would write the first two.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.sink.pending.Add(1)
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// Flush waits until each Event is written or rejected, or until ctx ends: an Event may be lost.
func (r *Recorder) Flush(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		r.sink.pending.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// sink counts the Events that are not written yet.
type sink struct {
	events.EventSink
	pending sync.WaitGroup
}

// Create writes an Event. After an error that is not the API server's response, the broadcaster calls it again
// (recordEvent in tools/events/event_broadcaster.go).
func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	created, err := s.EventSink.Create(ctx, event)
	if err == nil || errors.As(err, new(*apierrors.StatusError)) || errors.As(err, new(*rest.RequestConstructionError)) {
		s.pending.Done()
	}
	return created, err
}
