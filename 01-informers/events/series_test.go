package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
)

// finishSeries runs every 6 minutes and writes the count of a series without a repetition for 6 minutes, that is
// after at most 12.
func TestTheCountIsWrittenWhenTheSeriesEnds(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		for range 4 {
			b.failing()
			b.advance(time.Since(b.begin) + 20*time.Second)
		}
		b.advance(11 * time.Minute)
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
		b.advance(13 * time.Minute)
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2", "patch 4"}))

		// The series has ended: the next repetition is a new Event.
		b.failing()
		g.Expect(b.memory.verbs()).To(HaveLen(4))
		g.Expect(b.memory.writes[3].verb).To(Equal("create"))
		g.Expect(b.memory.writes[3].name).NotTo(Equal(b.memory.writes[0].name))
	})
}

// This also keeps the Event from expiring on the server after an hour (kube-apiserver --event-ttl).
func TestALongSeriesIsWrittenEvery30Minutes(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		b.failing()
		for i := range 7 {
			b.advance(time.Duration(i)*4*time.Minute + time.Minute)
			b.failing()
		}
		b.advance(29 * time.Minute)
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
		b.advance(31 * time.Minute)
		g.Expect(b.memory.verbs()).To(ContainElement("patch 8"))
	})
}

// Neither Shutdown nor a cancelled context writes the count.
func TestTheCountIsLostWhenTheProgramEnds(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		for range 5 {
			b.failing()
		}
		g.Expect(b.Close(b.Context())).To(Succeed())
		synctest.Wait()
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
	})
}

// The key is built by getKey in event_broadcaster.go.
func TestWhichEventsAreRepetitions(t *testing.T) {
	for _, row := range []struct {
		name    string
		second  func(b *bubble)
		repeats bool
	}{
		{"no difference", (*bubble).failing, true},
		{"another note", func(b *bubble) { b.record(subject("1"), nil, corev1.EventTypeNormal, "Failing", "Test", "why else") }, true},
		{"another reason", func(b *bubble) { b.record(subject("1"), nil, corev1.EventTypeNormal, "Failed", "Test", "why") }, false},
		{"another resourceVersion of the object", func(b *bubble) { b.record(subject("2"), nil, corev1.EventTypeNormal, "Failing", "Test", "why") }, false},
		{"another action", func(b *bubble) { b.record(subject("1"), nil, corev1.EventTypeNormal, "Failing", "Other", "why") }, false},
		{"another type", func(b *bubble) { b.record(subject("1"), nil, corev1.EventTypeWarning, "Failing", "Test", "why") }, false},
		{"a related object", func(b *bubble) {
			b.record(subject("1"), subject("1"), corev1.EventTypeNormal, "Failing", "Test", "why")
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, nil, func(g Gomega, b *bubble) {
				b.failing()
				row.second(b)
				if row.repeats {
					g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
					g.Expect(b.memory.writes[1].note).To(Equal("why"))
					return
				}
				g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "create 1"}))
			})
		})
	}
}

// The recorder accepts a reference instead of an object. Without a resourceVersion, a change of the object does
// not start a new series.
func TestAReferenceWithoutAResourceVersionKeepsTheSeries(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		for range 2 {
			b.record(&corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "space", Name: "subject", UID: "uid"},
				nil, corev1.EventTypeNormal, "Failing", "Test", "why")
		}
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
	})
}

func TestWhichRequestsAreRetried(t *testing.T) {
	resource := schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	for _, row := range []struct {
		name  string
		err   error
		tries int
	}{
		{"no connection: 12 times, 10 seconds apart", errors.New("connection refused"), 12},
		{"forbidden", apierrors.NewForbidden(resource, "", errors.New("no")), 1},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, "", nil), 1},
		// The broadcaster does not retry after a response. rest.Request has already retried 429 and 5xx responses
		// with a Retry-After header.
		{"internal error", apierrors.NewInternalError(errors.New("no")), 1},
		{"too many requests", apierrors.NewTooManyRequests("retry", 1), 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func() error { return row.err }, func(g Gomega, b *bubble) {
				b.failing()
				b.advance(5 * time.Minute)
				g.Expect(b.memory.verbs()).To(HaveLen(row.tries))
			})
		})
	}
}

// The broadcaster keeps the key, although the server does not have the Event. The repetition is a patch, and a
// create if the response to the patch is NotFound.
func TestTheRepetitionOfALostEventIsAPatch(t *testing.T) {
	fail := true
	inBubble(t, func() error {
		if fail {
			return apierrors.NewInternalError(errors.New("no"))
		}
		return nil
	}, func(g Gomega, b *bubble) {
		b.failing()
		fail = false
		b.failing()
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
	})
}

func TestAfterShutdownEventsAreDroppedWithoutAnError(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		b.broadcaster.Shutdown()
		b.failing()
		g.Expect(b.memory.verbs()).To(BeEmpty())
	})
}

// Eventf rejects the Event before the queue. Close waits a second for it.
func TestCloseDoesNotWaitForeverForARejectedEvent(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		b.Eventf(subject("1"), nil, "Error", "Rejected", "Test", "no such type")
		g.Expect(b.Close(b.Context())).To(Succeed())
		g.Expect(time.Since(b.begin)).To(BeNumerically("~", patience, 2*quiet))
		g.Expect(b.memory.verbs()).To(BeEmpty())
	})
}

// FakeRecorder is for the tests of a controller. It sends one line for each Event to a channel, and Eventf blocks
// while the channel is full.
func TestAFakeRecorderBlocksWhenItIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		fake := events.NewFakeRecorder(1)
		fake.Eventf(subject("1"), nil, corev1.EventTypeNormal, "Copied", "Copy", "copied %d keys", 3)
		second := make(chan struct{})
		go func() {
			fake.Eventf(subject("1"), nil, corev1.EventTypeWarning, "Failed", "Copy", "why")
			close(second)
		}()
		synctest.Wait()
		g.Expect(second).NotTo(BeClosed())
		g.Expect(<-fake.Events).To(Equal("Normal Copied copied 3 keys"))
		<-second
		g.Expect(<-fake.Events).To(Equal("Warning Failed why"))
	})
}
