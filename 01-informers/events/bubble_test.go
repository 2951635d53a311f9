package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// bubble is a recording to memory in a synctest bubble, where time advances only while every goroutine waits.
type bubble struct {
	*testing.T
	*recording
	memory *memory
	begin  time.Time
}

func inBubble(t *testing.T, respond func() error, test func(g Gomega, b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		memory := &memory{respond: respond}
		recording, err := recordInto(t.Context(), memory, nil)
		g.Expect(err).NotTo(HaveOccurred())
		defer recording.broadcaster.Shutdown()
		defer recording.cancel()
		test(g, &bubble{T: t, recording: recording, memory: memory, begin: time.Now()})
	})
}

// record records one Event and waits for the requests that it causes at once.
func (b *bubble) record(regarding, related runtime.Object, eventType, reason, action, note string) {
	b.Eventf(regarding, related, eventType, reason, action, "%s", note)
	synctest.Wait()
}

// failing records the Event that most tests repeat.
func (b *bubble) failing() {
	b.record(subject("1"), nil, corev1.EventTypeNormal, "Failing", "Test", "why")
}

// advance advances the time to this duration after the start.
func (b *bubble) advance(until time.Duration) {
	time.Sleep(time.Until(b.begin.Add(until)))
	synctest.Wait()
}

// subject returns an object with this resourceVersion.
func subject(resourceVersion string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "space", Name: "subject", UID: "uid", ResourceVersion: resourceVersion,
	}}
}

// memory is a sink that records requests, and returns the error of respond.
type memory struct {
	respond func() error

	mu     sync.Mutex
	writes []write
}

var _ events.EventSink = &memory{}

// write is one request. count is that of the series, or 1 without a series.
type write struct {
	verb, reason, note string
	count              int32
	name               string
}

// Create records a new Event.
func (m *memory) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return m.write("create", event)
}

// Update is not called by the broadcaster.
func (m *memory) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return m.write("update", event)
}

// Patch records the count of a series.
func (m *memory) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return m.write("patch", event)
}

func (m *memory) write(verb string, event *eventsv1.Event) (*eventsv1.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := int32(1)
	if event.Series != nil {
		count = event.Series.Count
	}
	m.writes = append(m.writes, write{verb, event.Reason, event.Note, count, event.Name})
	if m.respond != nil {
		if err := m.respond(); err != nil {
			return nil, err
		}
	}
	return event.DeepCopy(), nil
}

// verbs returns the requests with their counts: "create 1", "patch 2".
func (m *memory) verbs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	verbs := []string{}
	for _, write := range m.writes {
		verbs = append(verbs, fmt.Sprintf("%s %d", write.verb, write.count))
	}
	return verbs
}
