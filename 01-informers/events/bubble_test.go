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
	"k8s.io/client-go/tools/events"
)

// bubble is a recording into memory, in a synctest bubble: time stands still unless everybody waits.
type bubble struct {
	*testing.T
	*recording
	memory *memory
	begin  time.Time
}

func inBubble(t *testing.T, answer func() error, test func(g Gomega, b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		memory := &memory{answer: answer}
		recording, err := recordInto(t.Context(), memory, nil)
		g.Expect(err).NotTo(HaveOccurred())
		defer recording.broadcaster.Shutdown()
		defer recording.cancel()
		test(g, &bubble{T: t, recording: recording, memory: memory, begin: time.Now()})
	})
}

// say records one Event and waits until all has come of it that comes at once.
func (b *bubble) say(subject *corev1.ConfigMap, reason, note string) {
	b.Eventf(subject, nil, corev1.EventTypeNormal, reason, "Test", "%s", note)
	synctest.Wait()
}

// pass lets time go by, up to a moment after the begin.
func (b *bubble) pass(until time.Duration) {
	time.Sleep(time.Until(b.begin.Add(until)))
	synctest.Wait()
}

// subject is an object as it is in a cache, at some resourceVersion.
func subject(resourceVersion string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "space", Name: "subject", UID: "uid", ResourceVersion: resourceVersion,
	}}
}

// memory is a sink that answers as it is told to.
type memory struct {
	answer func() error

	mu     sync.Mutex
	writes []write
}

var _ events.EventSink = &memory{}

// write is one request. count is that of the series, 1 where there is none yet.
type write struct {
	verb, reason, note string
	count              int32
	name               string
}

// Create takes a new Event.
func (m *memory) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return m.write("create", event)
}

// Update is never called by the broadcaster.
func (m *memory) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return m.write("update", event)
}

// Patch takes the count of a series.
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
	if m.answer != nil {
		if err := m.answer(); err != nil {
			return nil, err
		}
	}
	return event.DeepCopy(), nil
}

// verbs lists what was asked for: "create 1", "patch 2", with the counts.
func (m *memory) verbs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	verbs := []string{}
	for _, write := range m.writes {
		verbs = append(verbs, fmt.Sprintf("%s %d", write.verb, write.count))
	}
	return verbs
}
