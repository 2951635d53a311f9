// Command events shows the recorder of events.k8s.io: what an Event says, how the same again becomes a
// count, what is lost and who is told (nobody), which rights it needs, and how a program ends without losing
// what it has just said.
//
// The sources to read beside it, in k8s.io/client-go v0.37.2:
//
//   - tools/events/event_recorder.go: recorderImpl.eventf, which builds the Event and hands it over in a
//     goroutine.
//   - tools/events/event_broadcaster.go: recordToSink and getKey decide what is the same again; recordEvent
//     decides what is tried again; refreshExistingEventSeries and finishSeries write the counts.
//   - tools/events/fake.go: FakeRecorder, for the tests of a controller.
//   - k8s.io/apimachinery v0.37.2, pkg/watch/mux.go: Broadcaster, the queue between the two.
//
// What it replaces: tools/record, the recorder of the older core/v1 Events. That one has no related object
// and no action; its key of "the same" has the message in it; it updates the count at every repetition, and
// throttles instead, to 25 at once and then one in five minutes for each source and object
// (EventSourceObjectSpamFilter), and merges what differs in the message only from the tenth on. Here nothing
// throttles: whoever puts a changing number into the reason, or records in every pass, writes that often.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:  "events",
	Shows: "Events of events.k8s.io: what they say, series, loss, rights, limits, and a clean end.",
	Run:   run,
}

// controller is who reports. The server wants a qualified name.
const controller = "example.com/events-lesson"

// session is one run of the lesson.
type session struct {
	*lesson.World
	// subject is what the Events are about, other what has to do with it.
	subject, other *corev1.ConfigMap
}

func run(ctx context.Context, world *lesson.World) error {
	s := &session{World: world}
	for name, target := range map[string]**corev1.ConfigMap{"subject": &s.subject, "other": &s.other} {
		created, err := world.Client.CoreV1().ConfigMaps(world.Namespace).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating ConfigMap %s: %w", name, err)
		}
		*target = created
	}
	for _, step := range []func(context.Context) error{
		s.sayOnce,
		s.doNotWait,
		s.sayAgain,
		s.exceedLimits,
		s.lackRights,
		s.end,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) events() eventsv1client.EventInterface {
	return s.Client.EventsV1().Events(s.Namespace)
}

// with lists the Events that have a reason, the oldest first.
func (s *session) with(ctx context.Context, reason string) ([]eventsv1.Event, error) {
	list, err := s.events().List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		return nil, fmt.Errorf("listing Events: %w", err)
	}
	return list.Items, nil
}
