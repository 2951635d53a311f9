package raw

import (
	"context"
	"errors"
	"fmt"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// recorder records Events through client-go's broadcaster, which writes them in the background, and adds what
// that lacks: a way to wait for them at the end.
type recorder struct {
	events.EventRecorder
	pending     *pending
	broadcaster events.EventBroadcaster
}

// newRecorder starts a recorder that writes until ctx ends.
func newRecorder(ctx context.Context, client eventsv1client.EventsV1Interface) (*recorder, error) {
	// The scheme tells the recorder the kind of the object that an Event is about.
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("starting the recorder of Events: %w", err)
	}
	pending := newPending()
	broadcaster := events.NewBroadcaster(&sink{EventSink: &events.EventSinkImpl{Interface: client}, pending: pending})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("starting the recorder of Events: %w", err)
	}
	return &recorder{
		EventRecorder: broadcaster.NewRecorder(scheme, foo.FieldOwner), pending: pending, broadcaster: broadcaster,
	}, nil
}

// Eventf records one Event. Each is about a status that was just written, so about another resourceVersion:
// no two are alike, and the broadcaster never makes a series of them, of which it would write the first two.
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.pending.add(1)
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// flush waits until all Events are written or given up, or ctx ends: an Event may be lost, an end may not
// hang.
func (r *recorder) flush(ctx context.Context) { r.pending.wait(ctx) }

// stop ends the broadcaster.
func (r *recorder) stop() { r.broadcaster.Shutdown() }

// sink notes when the broadcaster is done with an Event.
type sink struct {
	events.EventSink
	pending *pending
}

// Create writes an Event. After an error that is not the API server's answer the broadcaster calls it again
// (recordEvent in tools/events/event_broadcaster.go).
func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	created, err := s.EventSink.Create(ctx, event)
	var answer *apierrors.StatusError
	var construction *rest.RequestConstructionError
	if err == nil || errors.As(err, &answer) || errors.As(err, &construction) {
		s.pending.add(-1)
	}
	return created, err
}

// pending counts the Events that are not written yet.
type pending struct {
	mu      sync.Mutex
	count   int
	changed *sync.Cond
}

func newPending() *pending {
	p := &pending{}
	p.changed = sync.NewCond(&p.mu)
	return p
}

func (p *pending) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count += n
	p.changed.Broadcast()
}

// wait returns when none is pending, or ctx ends.
func (p *pending) wait(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.count > 0 && ctx.Err() == nil {
		p.changed.Wait()
	}
}
