// Package migrate is exercise 26c: the storage of a kind moves to another version, and the old one goes out of service.
package migrate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, config *rest.Config) error

// Check migrates Kettles.
func Check(t *check.T, work check.Work[Entry]) {
	stored := t.Behaviour("at the end all Kettles are stored as v1beta1", func(b *check.B) {
		s := newScene(b, work)
		s.migrate()
		s.expectStored()
	})
	out := t.Behaviour("status.storedVersions has v1beta1 alone, and v1alpha1 is not served", func(b *check.B) {
		s := newScene(b, work)
		s.migrate()
		s.expectOut()
	})
	if !stored || !out {
		return
	}
	t.Behaviour("nothing of a Kettle is lost, and nothing is added", func(b *check.B) {
		s := newScene(b, work)
		s.migrate()
		s.expectUnchanged()
	})
	t.Behaviour("a client that applied a field goes on to own it, also when the CRD does not know v1alpha1 any more", func(b *check.B) {
		s := newScene(b, work)
		s.migrate()
		s.expectOwners()
	})
	t.Behaviour("a list of several parts is migrated, too", func(b *check.B) {
		s := newScene(b, work)
		s.paged = true
		for i := range 2 * page {
			s.create(s.key(fmt.Sprintf("more-%d", i)))
		}
		s.migrate()
		s.expectMigrated()
	})
	t.Behaviour("what another client writes meanwhile stays, and is no error", func(b *check.B) {
		s := newScene(b, work)
		s.beforeKettle = func(number int, key types.NamespacedName) {
			if number <= 2 {
				s.write(newer, key, int64(10*number))
			}
		}
		s.migrate()
		s.expectMigrated()
	})
	t.Behaviour("a Kettle that is deleted meanwhile stays deleted, and is no error", func(b *check.B) {
		s := newScene(b, work)
		s.listed = func() { s.delete(s.key("three")) }
		s.beforeKettle = func(number int, key types.NamespacedName) {
			if number > 1 || key.Name == canary || key.Name == "three" {
				return
			}
			s.delete(key)
			if key.Name == "two" {
				s.write(newer, key, 10)
			}
		}
		s.migrate()
		s.expectMigrated()
	})
	t.Behaviour("what a client writes in v1alpha1, as long as that is served, is migrated, too", func(b *check.B) {
		s := newScene(b, work)
		number := 0
		s.beforeCRD = func() {
			number++
			s.write(older, s.key("one"), int64(10*number))
			s.write(older, s.key(fmt.Sprintf("late-%d", number)), 10)
		}
		s.migrate()
		s.expectMigrated()
	})
	t.Behaviour("if the storage is moved back meanwhile, and then on again, no Kettle stays behind", func(b *check.B) {
		s := newScene(b, work)
		once := false
		s.beforeCRD = func() {
			if once || len(s.outdated()) > 0 {
				return
			}
			once = true
			s.store(older)
			s.write(older, s.key("one"), 10)
			s.store(newer)
		}
		// The first call may return an error.
		if s.call() != nil {
			s.migrate()
		}
		s.expectMigrated()
	})
	t.Behaviour("whichever request fails, it can be called again", func(b *check.B) {
		s := newScene(b, work)
		s.interrupt()
		s.expectMigrated()
	})
}

// interrupt calls Migrate often. In the first call the first request fails, in the second call the second, and so on, until a call sends
// fewer requests.
func (s *scene) interrupt() {
	for number, more := 1, true; more; number++ {
		sent := 0
		s.wire.Fail(1, func(kube.Request) bool {
			sent++
			return sent == number
		})
		if err := s.call(); err == nil {
			s.expectStored()
			s.expectOut()
			s.expectUnnamed()
		}
		more = sent >= number
	}
	s.wire.Fail(0, nil)
	s.migrate()
}

// expectMigrated asserts all of it.
func (s *scene) expectMigrated() {
	s.expectStored()
	s.expectOut()
	s.expectUnchanged()
	s.expectOwners()
}
