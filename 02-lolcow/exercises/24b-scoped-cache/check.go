// Package scopedcache is exercise 24b: a cache that holds what the operator reads, and no more.
package scopedcache

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry func() (cache.Options, client.Options)

const patience = 10 * time.Second

// Check starts a manager with the options, and reads what the operator reads.
func Check(t *check.T, work check.Work[Entry]) {
	t.Behaviour("what is its own is in the cache with all fields", func(b *check.B) {
		s := newScene(b)
		s.createDeployment("cow", ours)
		s.createPod("cow-1", ours)
		s.createPod("sheep-1", theirs)
		s.start(work.Entry)
		s.expectOwn()
	})
	t.Behaviour("a Deployment of another, with the name that the operator needs, is seen", func(b *check.B) {
		s := newScene(b)
		s.createDeployment("cow", theirs)
		s.start(work.Entry)
		s.expectConflict("cow")
		s.createDeployment("calf", theirs)
		s.expectConflict("calf")
	})
	t.Behaviour("a Secret is read as it is now", func(b *check.B) {
		s := newScene(b)
		s.createSecret()
		s.start(work.Entry)
		s.expectSecret("one")
		// A cache that is behind: it gets no event from now on.
		s.wire.CutWatches()
		s.changeSecret()
		if wrong := s.readSecret("two"); wrong != "" {
			b.Fatalf("%s", wrong)
		}
	})
	t.Behaviour("Secrets are neither listed nor watched", func(b *check.B) {
		s := newScene(b)
		s.createSecret()
		s.start(work.Entry)
		s.expectSecret("one")
		for _, request := range s.wire.Requests("list", "watch") {
			if request.Resource == "secrets" {
				b.Fatalf("it reads one Secret, and sends: %s secrets", request.Verb)
			}
		}
	})
	t.Behaviour("Pods and Deployments are read from the cache", func(b *check.B) {
		s := newScene(b)
		s.createDeployment("cow", ours)
		s.createPod("cow-1", ours)
		s.start(work.Entry)
		s.expectOwn()
		before := len(s.wire.Requests())
		s.expectOwn()
		// A watch that has reached its time limit begins again.
		for _, request := range s.wire.Requests()[before:] {
			if request.Verb != "watch" {
				b.Fatalf("a read of what the cache has sends a request: %s %s", request.Verb, request.Resource)
			}
		}
	})
	t.Behaviour("of the Pods of others, the cache has at most who they are", func(b *check.B) {
		s := newScene(b)
		s.createPod("cow", ours)
		s.createPod("sheep", theirs)
		s.start(work.Entry)
		s.expectReducedPods()
	})
	t.Behaviour("of the Deployments of others, the cache has at most who they are, and whose", func(b *check.B) {
		s := newScene(b)
		s.createDeployment("cow", ours)
		s.createDeployment("sheep", theirs)
		s.start(work.Entry)
		s.expectReducedDeployments()
	})
}
