package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestProgram(t *testing.T) {
	testserver.ExpectOutput(t, program)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	namespace := testserver.Namespace(t)
	client := testserver.Client(t).EventsV1().Events(namespace)
	for _, row := range []struct {
		name, rejected string
		change         func(*eventsv1.Event)
	}{
		{"valid", "", func(*eventsv1.Event) {}},
		{"a note of 1,024 bytes", "", func(e *eventsv1.Event) { e.Note = strings.Repeat("x", 1024) }},
		{"a note of 1,025 bytes", "can have at most 1024 characters", func(e *eventsv1.Event) { e.Note = strings.Repeat("x", 1025) }},
		{"the limit is in bytes, not characters", "can have at most 1024 characters", func(e *eventsv1.Event) { e.Note = strings.Repeat("ü", 513) }},
		{"a reason of 128 bytes", "", func(e *eventsv1.Event) { e.Reason = strings.Repeat("x", 128) }},
		{"a reason of 129 bytes", "can have at most 128 characters", func(e *eventsv1.Event) { e.Reason = strings.Repeat("x", 129) }},
		{"no reason", "Required value", func(e *eventsv1.Event) { e.Reason = "" }},
		{"no action", "Required value", func(e *eventsv1.Event) { e.Action = "" }},
		{"no note", "", func(e *eventsv1.Event) { e.Note = "" }},
		{"a reporting controller that is not a qualified name", "reportingController", func(e *eventsv1.Event) { e.ReportingController = "my controller" }},
		{"an unknown type", "has invalid value", func(e *eventsv1.Event) { e.Type = "Error" }},
		{"a series of one", "should be at least 2", func(e *eventsv1.Event) {
			e.Series = &eventsv1.EventSeries{Count: 1, LastObservedTime: metav1.NowMicro()}
		}},
		{"regarding a cluster-scoped object, outside default and kube-system", "does not match event.namespace", func(e *eventsv1.Event) { e.Regarding.Namespace = "" }},
		// The core API compares the namespaces. In this API, the writer of an Event may have no permissions for the
		// regarding object.
		{"regarding an object in another namespace", "", func(e *eventsv1.Event) { e.Regarding.Namespace = "elsewhere" }},
		{"regarding an object that does not exist", "", func(e *eventsv1.Event) { e.Regarding.Name = "none" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := NewWithT(t)
			event := valid(namespace)
			row.change(event)
			_, err := client.Create(t.Context(), event, metav1.CreateOptions{})
			if row.rejected == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(row.rejected)))
		})
	}
}

func valid(namespace string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "event-"},
		EventTime:  metav1.NowMicro(), Type: corev1.EventTypeNormal, Reason: "Tested", Action: "Test", Note: "note",
		ReportingController: controller, ReportingInstance: "instance",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "subject"},
	}
}

// Only the series can be updated. So a series keeps the note of its first Event.
func TestOnlyTheSeriesOfAnEventCanBeUpdated(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	client := testserver.Client(t).EventsV1().Events(namespace)
	event, err := client.Create(t.Context(), valid(namespace), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	again := event.DeepCopy()
	again.Note = "another"
	_, err = client.Update(t.Context(), again, metav1.UpdateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("field is immutable")))

	again = event.DeepCopy()
	again.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NowMicro()}
	_, err = client.Update(t.Context(), again, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// Both APIs have the same objects. kubectl reads Events through the core API, with its field names.
func TestTheCoreAPIReturnsTheSameEvent(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	event, err := testserver.Client(t).EventsV1().Events(namespace).Create(t.Context(), valid(namespace), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	old, err := testserver.Client(t).CoreV1().Events(namespace).Get(t.Context(), event.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(old.Message).To(Equal(event.Note))
	g.Expect(old.InvolvedObject).To(Equal(event.Regarding))
	g.Expect(old.Count).To(BeZero(), "events.k8s.io has the count in the series")
}

func TestAnEventAboutAClusterScopedObjectIsInDefault(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client := testserver.Client(t)
	recording, err := record(t.Context(), client, nil)
	g.Expect(err).NotTo(HaveOccurred())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: testserver.Namespace(t), UID: "uid"}}
	recording.Eventf(node, nil, corev1.EventTypeNormal, "Tested", "Test", "a node has no namespace")
	g.Expect(recording.Close(t.Context())).To(Succeed())

	list, err := client.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=" + node.Name})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(1))
}
