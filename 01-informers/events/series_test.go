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

func TestTheSecondIsAPatchAtOnceAndTheThirdIsOnlyCounted(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		for range 3 {
			b.say(subject("1"), "Failing", "why")
		}
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
		g.Expect(time.Since(b.begin)).To(BeZero())
	})
}

// finishSeries runs every 6 minutes and writes the count of what has been silent for 6: up to 12 in all.
func TestTheCountIsWrittenWhenItHasBeenSilent(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		for range 4 {
			b.say(subject("1"), "Failing", "why")
			b.pass(time.Since(b.begin) + 20*time.Second)
		}
		b.pass(11 * time.Minute)
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
		b.pass(13 * time.Minute)
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2", "patch 4"}))

		// The series has ended: the same again is another Event.
		b.say(subject("1"), "Failing", "why")
		g.Expect(b.memory.verbs()).To(HaveLen(4))
		g.Expect(b.memory.writes[3].verb).To(Equal("create"))
		g.Expect(b.memory.writes[3].name).NotTo(Equal(b.memory.writes[0].name))
	})
}

// What goes on and on is written every 30 minutes, which also keeps the server from forgetting it: an Event
// lives for an hour there (kube-apiserver --event-ttl).
func TestALongSeriesIsWrittenEvery30Minutes(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		b.say(subject("1"), "Failing", "why")
		for i := range 7 {
			b.pass(time.Duration(i)*4*time.Minute + time.Minute)
			b.say(subject("1"), "Failing", "why")
		}
		b.pass(29 * time.Minute)
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
		b.pass(31 * time.Minute)
		g.Expect(b.memory.verbs()).To(ContainElement("patch 8"))
	})
}

// A program that ends in between takes the count with it: neither Shutdown nor the end of the context writes it.
func TestAnEndLosesTheCount(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		for range 5 {
			b.say(subject("1"), "Failing", "why")
		}
		g.Expect(b.Close(b.Context())).To(Succeed())
		synctest.Wait()
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
	})
}

// What makes two Events the same: getKey in event_broadcaster.go.
func TestWhatIsTheSame(t *testing.T) {
	for _, row := range []struct {
		name   string
		second func(b *bubble)
		same   bool
	}{
		{"all of it", func(b *bubble) { b.say(subject("1"), "Failing", "why") }, true},
		{"another note", func(b *bubble) { b.say(subject("1"), "Failing", "why else") }, true},
		{"another reason", func(b *bubble) { b.say(subject("1"), "Failed", "why") }, false},
		{"another resourceVersion of the object", func(b *bubble) { b.say(subject("2"), "Failing", "why") }, false},
		{"another action", func(b *bubble) {
			b.Eventf(subject("1"), nil, corev1.EventTypeNormal, "Failing", "Other", "why")
			synctest.Wait()
		}, false},
		{"another type", func(b *bubble) {
			b.Eventf(subject("1"), nil, corev1.EventTypeWarning, "Failing", "Test", "why")
			synctest.Wait()
		}, false},
		{"a related object", func(b *bubble) {
			b.Eventf(subject("1"), subject("1"), corev1.EventTypeNormal, "Failing", "Test", "why")
			synctest.Wait()
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, nil, func(g Gomega, b *bubble) {
				b.say(subject("1"), "Failing", "why")
				row.second(b)
				if row.same {
					g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
					g.Expect(b.memory.writes[1].note).To(Equal("why"))
					return
				}
				g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "create 1"}))
			})
		})
	}
}

// A reference without resourceVersion makes a series that outlives changes of the object. The recorder takes
// a reference in place of an object.
func TestAReferenceWithoutAResourceVersionKeepsASeriesTogether(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		for range 2 {
			b.Eventf(&corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "space", Name: "subject", UID: "uid"},
				nil, corev1.EventTypeNormal, "Failing", "Test", "why")
			synctest.Wait()
		}
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
	})
}

func TestWhatIsTriedAgain(t *testing.T) {
	resource := schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	for _, row := range []struct {
		name  string
		err   error
		tries int
	}{
		{"no connection: 12 times, 10 seconds apart", errors.New("connection refused"), 12},
		{"forbidden", apierrors.NewForbidden(resource, "", errors.New("no")), 1},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, "", nil), 1},
		// Whatever the server has answered is final here. rest.Request has tried 429 and 503 before, where
		// they came with Retry-After.
		{"internal error", apierrors.NewInternalError(errors.New("no")), 1},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func() error { return row.err }, func(g Gomega, b *bubble) {
				b.say(subject("1"), "Lost", "why")
				b.pass(5 * time.Minute)
				g.Expect(b.memory.verbs()).To(HaveLen(row.tries))
			})
		})
	}
}

// The key is remembered, though the server never had the Event. The same again is sent as a patch, and
// created when the patch finds nothing.
func TestAfterALossTheNextIsAPatch(t *testing.T) {
	fail := true
	inBubble(t, func() error {
		if fail {
			return apierrors.NewInternalError(errors.New("no"))
		}
		return nil
	}, func(g Gomega, b *bubble) {
		b.say(subject("1"), "Lost", "why")
		fail = false
		b.say(subject("1"), "Lost", "why")
		g.Expect(b.memory.verbs()).To(Equal([]string{"create 1", "patch 2"}))
	})
}

func TestAfterShutdownEventsAreDroppedInSilence(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		b.broadcaster.Shutdown()
		b.say(subject("1"), "Late", "why")
		g.Expect(b.memory.verbs()).To(BeEmpty())
	})
}

// What Eventf itself refuses never gets as far as the queue; Close waits a second for it and gives up.
func TestCloseDoesNotWaitForEverForWhatWasRefused(t *testing.T) {
	inBubble(t, nil, func(g Gomega, b *bubble) {
		b.Eventf(subject("1"), nil, "Error", "Refused", "Test", "no such type")
		g.Expect(b.Close(b.Context())).To(Succeed())
		g.Expect(time.Since(b.begin)).To(BeNumerically("~", patience, 2*quiet))
		g.Expect(b.memory.verbs()).To(BeEmpty())
	})
}

// For a controller's own tests. It writes one line for each Event into a channel, and an Eventf that finds
// the channel full waits: give it room, or read along.
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
