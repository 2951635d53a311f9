// Package cache is exercise 19b: one Job for each attempt, with a cache that is behind.
package cache

import (
	"context"

	"example.com/workbook/03-flux/exercises/internal/tasks"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader repairs.
type Entry func(ctx context.Context, c tasks.Clients, name string) error

const (
	running = "Running"
	lost    = "JobLost"
	// most is how many calls a task may need, and more how often a controller is called whose cache is behind.
	most = 10
	more = 5
)

// Check reconciles a task, with a cache that has what the check gives it.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("an attempt gets its Job, and is Running", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle()
		s.expect(1, running)
	})
	if !ok {
		return
	}
	t.Behaviour("an attempt whose Job was deleted is JobLost, and gets no other Job", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle()
		s.deleteJobs()
		s.cacheHas(s.live())
		s.wire.Fail(1, kube.Writes)
		if err := s.call(); err == nil {
			b.Event("  it returned no error: nothing calls it again")
			s.expect(1, lost)
		}
		s.settle()
		s.expect(1, lost)
	})
	t.Behaviour("the next attempt gets a Job", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle()
		s.attempt("2")
		s.settle()
		s.expect(2, running)
		s.deleteJobs()
		s.settle()
		s.attempt("10")
		s.settle()
		s.expect(3, running)
	})
	t.Behaviour("a task of the same name that is created later gets a Job of its own", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle()
		s.delete()
		s.create()
		for range more {
			s.cacheHas(s.live())
			_ = s.call()
			s.expectNotOlder()
		}
		s.collect()
		s.settle()
		s.expect(2, running)
	})
	checkOld(t, work.Entry)
	checkFaults(t, work.Entry)
	t.Behaviour("when the cache is up to date and nothing is to be done, it sends no request", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle()
		s.quiet(running)
		s.deleteJobs()
		s.settle()
		s.quiet(lost)
	})
}

// checkOld has a cache that is behind.
func checkOld(t *check.T, entry Entry) {
	t.Behaviour("an attempt has one Job, also if the cache lacks it", func(b *check.B) {
		s := newScene(b, entry)
		for range more {
			_ = s.call()
		}
		s.settle()
		s.expect(1, running)
	})
	t.Behaviour("an attempt whose Job was deleted gets no other one, also if the cache lacks all of it", func(b *check.B) {
		s := newScene(b, entry)
		for range more {
			_ = s.call()
		}
		s.deleteJobs()
		for range more {
			_ = s.call()
		}
		s.settle()
		s.expect(1, lost)
	})
	t.Behaviour("a Job that the cache lacks is not lost", func(b *check.B) {
		s := newScene(b, entry)
		for range more {
			_ = s.call()
			s.refreshConfigMaps()
		}
		s.expect(1, running)
		s.settle()
		s.expect(1, running)
	})
	t.Behaviour("an attempt that is over is not begun again, if the cache still has it", func(b *check.B) {
		s := newScene(b, entry)
		old := s.cached()
		s.settle()
		s.deleteJobs()
		s.attempt("2")
		s.settle()
		s.cacheHas(old)
		for range more {
			_ = s.call()
		}
		s.settle()
		s.expect(2, running)
	})
}

// checkFaults lets the controller crash, and has a second replica.
func checkFaults(t *check.T, entry Entry) {
	t.Behaviour("an attempt has one Job, at whichever write the controller crashes", func(b *check.B) {
		for _, after := range []bool{false, true} {
			for number := 1; ; number++ {
				s := newScene(b, entry)
				s.process.CrashAt(number, after)
				_ = s.call()
				_ = s.call()
				s.settle()
				s.expect(1, running)
				if !s.process.Crashed() {
					break
				}
			}
		}
	})
	t.Behaviour("a read that fails says neither that a Job is lost nor that there was none", func(b *check.B) {
		for _, state := range []string{running, lost} {
			for number := 1; ; number++ {
				s := newScene(b, entry)
				s.settle()
				if state == lost {
					s.deleteJobs()
				}
				s.cacheHas(content{configMaps: s.live().configMaps})
				var err error
				failed := s.wire.FailRead(number, func() { err = s.call() })
				if failed && err == nil {
					b.Event("  it returned no error: nothing calls it again")
					s.expect(1, state)
				} else if state == running {
					s.expect(1, running)
				}
				s.settle()
				s.expect(1, state)
				if !failed {
					break
				}
			}
		}
	})
	t.Behaviour("two replicas create one Job", func(b *check.B) {
		s := newScene(b, entry)
		s.otherReplicaBeforeTheFirstWrite(func() {})
		s.settle()
		s.expect(1, running)
	})
	t.Behaviour("the state of an attempt that is over is not written over that of the next one", func(b *check.B) {
		s := newScene(b, entry)
		s.settle()
		s.deleteJobs()
		s.otherReplicaBeforeTheFirstWrite(func() {
			s.attempt("2")
			s.cacheHas(s.live())
		})
		s.settle()
		s.expect(2, running)
	})
}
