// Package tag is exercise 22c: a script that deploys what it has built.
package tag

import (
	"time"

	"example.com/workbook/shared/exercise/check"
)

// patience is for a rollout, on nodes that may have much to do.
const patience = time.Minute

// Check deploys a program again and again, on a kind cluster.
func Check(t *check.T, work check.Work[check.Files]) {
	ok := t.Behaviour("what the first call has built runs in the cluster", func(b *check.B) {
		l := newLoop(b, work.Dir)
		l.deploy()
		l.expect("1 says Moo")
	})
	if !ok {
		return
	}
	t.Behaviour("so does a changed greeting, and the greeting of before", func(b *check.B) {
		l := newLoop(b, work.Dir)
		l.deploy()
		l.expect("1 says Moo")
		l.greet("Baa")
		l.deploy()
		l.expect("1 says Baa")
		l.greet("Moo")
		l.deploy()
		l.expect("1 says Moo")
	})
	t.Behaviour("so does a changed program", func(b *check.B) {
		l := newLoop(b, work.Dir)
		l.deploy()
		l.expect("1 says Moo")
		l.compile("2")
		l.deploy()
		l.expect("2 says Moo")
	})
	t.Behaviour("so does a changed Dockerfile", func(b *check.B) {
		l := newLoop(b, work.Dir)
		l.deploy()
		l.expect("1 says Moo")
		l.changeDockerfile()
		l.deploy()
		l.expect("1 says loudly Moo")
	})
	t.Behaviour("if nothing has changed, the Deployment is the same, and so is the Pod; one that was deleted comes back", func(b *check.B) {
		l := newLoop(b, work.Dir)
		l.deploy()
		before := l.expect("1 says Moo")
		l.deploy()
		l.same(before, l.expect("1 says Moo"))
		l.remove()
		l.deploy()
		l.expect("1 says Moo")
	})
	t.Behaviour("the files are the same after a call as before it", func(b *check.B) {
		l := newLoop(b, work.Dir)
		before := l.files()
		l.deploy()
		l.unchanged(before)
	})
}
