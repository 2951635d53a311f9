package raw

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

	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestEventReachesTheServer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client, namespace := testserver.Client(t), testserver.Namespace(t)
	recorder, err := newRecorder(t.Context(), client.EventsV1())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(recorder.stop)
	f := aFoo("one", "web")
	f.Namespace = namespace
	recorder.Eventf(f, nil, corev1.EventTypeWarning, "NameConflict", foo.Action, "%s", "100% of it is there")
	flush(t, recorder)

	recorded, err := client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(recorded.Items).To(HaveLen(1), "flush has waited for it")
	event := recorded.Items[0]
	g.Expect(event.Regarding.Kind).To(Equal("Foo"))
	g.Expect(event.Regarding.Name).To(Equal("one"))
	g.Expect(event.ReportingController).To(Equal("foo-controller"))
	g.Expect(event.Note).To(Equal("100% of it is there"))
}

// flush waits for a recorder's Events, far longer than that should take.
func flush(t *testing.T, recorder *recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	recorder.flush(ctx)
	NewWithT(t).Expect(ctx.Err()).NotTo(HaveOccurred(), "flush has given up")
}

// answering has a recorder whose writes are answered by answer, one after another.
func answering(t *testing.T, answer func(*eventsv1.Event) error) *recorder {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		return true, event, answer(event)
	})
	recorder, err := newRecorder(t.Context(), client.EventsV1())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(recorder.stop)
	return recorder
}

func TestFlushWaitsForEachOfManyEvents(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	written := make(chan string, 100)
	recorder := answering(t, func(event *eventsv1.Event) error {
		written <- event.Reason
		return nil
	})
	f := aFoo("one", "web")
	for _, version := range []string{"1", "2", "3", "4"} {
		f.ResourceVersion = version
		recorder.Eventf(f, nil, corev1.EventTypeNormal, "Available", foo.Action, "all alike but for the resourceVersion")
	}
	flush(t, recorder)
	g.Expect(written).To(HaveLen(4), "no series is made of them")
}

func TestFlushDoesNotWaitForWhatIsRefused(t *testing.T) {
	t.Parallel()
	recorder := answering(t, func(*eventsv1.Event) error {
		return apierrors.NewForbidden(eventsv1.Resource("events"), "", errors.New("the namespace goes"))
	})
	recorder.Eventf(aFoo("one", "web"), nil, corev1.EventTypeNormal, "Available", foo.Action, "now")
	flush(t, recorder)
}

func TestFlushIsBounded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tried := make(chan struct{}, 100)
	recorder := answering(t, func(*eventsv1.Event) error {
		tried <- struct{}{}
		return errors.New("no connection")
	})
	recorder.Eventf(aFoo("one", "web"), nil, corev1.EventTypeNormal, "Available", foo.Action, "now")
	<-tried
	ctx, cancel := context.WithCancel(t.Context())
	flushed := make(chan struct{})
	go func() {
		recorder.flush(ctx)
		close(flushed)
	}()
	g.Consistently(flushed, "100ms").ShouldNot(BeClosed(), "the broadcaster will try again")
	cancel()
	g.Eventually(flushed).Should(BeClosed())
}
