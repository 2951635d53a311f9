// Package brokenwatch is exercise 21b: a client that waits for an end, whatever becomes of its watch.
package brokenwatch

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (int, error)

const (
	patience = 10 * time.Second
	// begin is how long it may take until it watches, with pauses: that of a reflector is longer after each watch that was short.
	begin = 40 * time.Second
	// tries is how many requests it may send until it watches: up to three in each try, and ten tries while the API server is away.
	tries = 40
	// cuts is how often a watch is cut, and updates how often the status changes while one lasts.
	cuts    = 4
	updates = 5
	// The API server is away for so many requests, one after the other, and for a time at least.
	failures = 3
	away     = time.Second
)

// Check waits for Goops, and cuts the watches.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("it waits for the end, and returns the exit code", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.working()
		s.ends(new(int32(3)))
		s.returns(3)
	})
	t.Behaviour("a Goop that has ended already, or without an exit code, is an end, too", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.ends(nil)
		s.call()
		s.returns(0)
	})
	t.Behaviour("a Goop that is deleted while it watches is an error", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.delete()
		s.fails("a user has deleted the Goop")
	})
	t.Behaviour("when its context ends, it returns an error", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.cancel()
		s.fails("its context has ended")
	})
	if !ok {
		return
	}
	checkCuts(t, work.Entry)
	checkAway(t, work.Entry)
	checkForgotten(t, work.Entry)
	checkRequests(t, work.Entry)
}

// checkCuts cuts watches, as a proxy.
func checkCuts(t *check.T, entry Entry) {
	ok := t.Behaviour("a watch that is cut, and cut again, is not the end", func(b *check.B) {
		s := newScene(b, entry)
		s.start()
		for range cuts {
			s.cut()
		}
		s.ends(new(int32(3)))
		s.returns(3)
	})
	if !ok {
		return
	}
	t.Behaviour("an end that no watch has seen is one", func(b *check.B) {
		s := newScene(b, entry)
		s.start()
		s.meanwhile(func() { s.ends(new(int32(3))) })
		s.returns(3)
	})
	t.Behaviour("a deletion that no watch has seen is an error", func(b *check.B) {
		s := newScene(b, entry)
		s.start()
		s.meanwhile(s.delete)
		s.fails("a user has deleted the Goop")
	})
	t.Behaviour("the end of another Goop of the same name is not its end", func(b *check.B) {
		s := newScene(b, entry)
		s.start()
		s.meanwhile(func() {
			s.delete()
			s.create()
			s.ends(nil)
		})
		s.fails("a user has deleted the Goop, and another one of that name has ended")
	})
}

// checkAway lets requests fail.
func checkAway(t *check.T, entry Entry) {
	t.Behaviour("a request that fails because the API server is away is tried again", func(b *check.B) {
		reads := func(request kube.Request) bool { return request.Verb == "get" || kube.Lists(request) }
		for _, kind := range []func(kube.Request) bool{reads, kube.Watches} {
			s := newScene(b, entry)
			s.start()
			s.away(kind)
			s.cut()
			s.ends(new(int32(3)))
			s.returns(3)
		}
		s := newScene(b, entry)
		s.wire.Fail(1, func(kube.Request) bool { return true })
		s.start()
		s.ends(new(int32(3)))
		s.returns(3)
	})
}

// checkForgotten lets the server forget from where the watch could go on.
func checkForgotten(t *check.T, entry Entry) {
	for _, one := range []struct {
		how      string
		inStream bool
	}{{"in the stream", true}, {"in the response", false}} {
		t.Behaviour("410 "+one.how+" is not the end: it goes on, and sees what comes later", func(b *check.B) {
			s := newScene(b, entry)
			s.start()
			s.wire.Gap(one.inStream, s.working)
			s.watches()
			s.working()
			s.ends(new(int32(3)))
			s.returns(3)
		})
	}
	t.Behaviour("an end, or a deletion, before the 410 is not lost", func(b *check.B) {
		s := newScene(b, entry)
		s.start()
		s.wire.Gap(true, func() { s.ends(new(int32(3))) })
		s.watches()
		s.returns(3)
		s = newScene(b, entry)
		s.start()
		s.wire.Gap(true, s.delete)
		s.watches()
		s.fails("a user has deleted the Goop")
	})
}

// checkRequests looks at what it has sent.
func checkRequests(t *check.T, entry Entry) {
	t.Behaviour("it reads Goops, and nothing else, and does not poll", func(b *check.B) {
		s := newScene(b, entry)
		s.start()
		reads := len(s.reads())
		for range updates {
			s.working()
		}
		s.cut()
		s.ends(nil)
		s.returns(0)
		s.onlyGoops()
		if polled := len(s.reads()) - reads; polled >= updates {
			b.Fatalf("the status has changed %d times, and it sent %d requests to read", updates, polled)
		}
	})
}
