package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

func TestMain(m *testing.M) {
	// A busy machine needs more than the second that is the default.
	SetDefaultEventuallyTimeout(10 * time.Second)
	m.Run()
}

// newRecorder returns a recorder of a client without an API server, which responds to each Event with an error or none.
func newRecorder(t *testing.T, respond func(*eventsv1.Event) error) *Recorder {
	t.Helper()
	g := NewWithT(t)
	client, scheme := fake.NewClientset(), runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		return true, event, respond(event)
	})
	recorder, err := NewRecorder(t.Context(), client.EventsV1(), scheme)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(recorder.Stop)
	return recorder
}

func record(recorder *Recorder, version, note string) {
	f := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "space", ResourceVersion: version}}
	recorder.Eventf(f, nil, corev1.EventTypeNormal, "Available", foo.Action, "%s", note)
}

// flush waits for a recorder's Events, for much longer than they take.
func flush(t *testing.T, recorder *Recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	recorder.Flush(ctx)
	NewWithT(t).Expect(ctx.Err()).NotTo(HaveOccurred(), "the time was exceeded")
}

func TestFlushWaitsForEachOfManyEvents(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	written := make(chan *eventsv1.Event, 100)
	recorder := newRecorder(t, func(event *eventsv1.Event) error {
		written <- event
		return nil
	})
	for _, version := range []string{"1", "2", "3", "4"} {
		record(recorder, version, "100% available")
	}
	flush(t, recorder)
	g.Expect(written).To(HaveLen(4), "they are no series")
	event := <-written
	g.Expect(event.Regarding.Kind).To(Equal("Foo"))
	g.Expect(event.Regarding.Name).To(Equal("one"))
	g.Expect(event.ReportingController).To(Equal("foo-controller"))
	g.Expect(event.Note).To(Equal("100% available"))
}

func TestFlushDoesNotWaitForWhatIsRejected(t *testing.T) {
	t.Parallel()
	recorder := newRecorder(t, func(*eventsv1.Event) error {
		return apierrors.NewForbidden(eventsv1.Resource("events"), "", errors.New("the namespace is terminating"))
	})
	record(recorder, "1", "now")
	flush(t, recorder)
}

func TestFlushIsBounded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tried := make(chan struct{}, 100)
	recorder := newRecorder(t, func(*eventsv1.Event) error {
		tried <- struct{}{}
		return errors.New("no connection")
	})
	record(recorder, "1", "now")
	<-tried
	ctx, cancel := context.WithCancel(t.Context())
	flushed := make(chan struct{})
	go func() {
		recorder.Flush(ctx)
		close(flushed)
	}()
	g.Consistently(flushed, "100ms").ShouldNot(BeClosed(), "the broadcaster will try again")
	cancel()
	g.Eventually(flushed).Should(BeClosed())
}

func TestLeaseNeedsANamespace(t *testing.T) {
	t.Parallel()
	_, err := NewLock(nil, Options{}, "one")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--leader-election-namespace must be given")))
}
