// Command events shows the recorder of events.k8s.io: what an Event contains, how repeated Events become a
// series, which Events are lost without an error, which permissions the recorder needs, and how a program ends
// without losing Events.
//
// Source, k8s.io/client-go v0.37.2:
//
//   - tools/events/event_recorder.go: recorderImpl.eventf, which builds the Event and passes it on in a
//     goroutine.
//   - tools/events/event_broadcaster.go: recordToSink and getKey decide which Events are repetitions; recordEvent
//     decides which requests are retried; refreshExistingEventSeries and finishSeries write the counts.
//   - tools/events/fake.go: FakeRecorder, for the tests of a controller.
//   - k8s.io/apimachinery v0.37.2, pkg/watch/mux.go: Broadcaster, the queue between recorder and sink.
//
// What it replaces: tools/record, the recorder of core/v1 Events. It has no related object and no action. Its
// key of a repetition includes the message. It updates the count at every repetition, and limits the rate: 25 at
// once and then one in five minutes for each source and object (EventSourceObjectSpamFilter); from the tenth
// Event on it merges those that differ only in the message. The recorder of events.k8s.io does not limit the
// rate: a controller that puts a changing number into the reason, or records an Event in every reconciliation,
// sends a request each time.
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
	Shows: "Events of events.k8s.io: contents, series, loss, permissions, limits, and the end of a program.",
	Run:   run,
}

// controller is the reporting controller. The server requires a qualified name.
const controller = "example.com/events-lesson"

// session is one run of the lesson.
type session struct {
	*lesson.Env
	// subject and other are the regarding and the related object of the Events.
	subject, other *corev1.ConfigMap
}

func run(ctx context.Context, env *lesson.Env) (err error) {
	s := &session{Env: env}
	if s.subject, err = env.CreateConfigMap(ctx, "subject", ""); err != nil {
		return err
	}
	if s.other, err = env.CreateConfigMap(ctx, "other", ""); err != nil {
		return err
	}
	return lesson.Steps(ctx, s.recordOne, s.recordWithoutWaiting, s.recordSeries, s.exceedLimits, s.lackPermissions, s.end)
}

func (s *session) events() eventsv1client.EventInterface {
	return s.Client.EventsV1().Events(s.Namespace)
}

// with returns the Events with this reason.
func (s *session) with(ctx context.Context, reason string) ([]eventsv1.Event, error) {
	list, err := s.events().List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		return nil, fmt.Errorf("listing Events: %w", err)
	}
	return list.Items, nil
}
