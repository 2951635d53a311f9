package mirror

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// rests checks how it ends and begins again, and that nothing is written where all is in order.
func rests(t *check.T, entry Entry) {
	t.Behaviour("when its context ends it returns nil, and no watch is open", func(b *check.B) {
		c := started(b, entry)
		c.stop()
		b.Eventually(patience, func() string {
			if c.wire.OpenWatches() > 0 {
				return "Run has returned, and a watch is open"
			}
			return ""
		})
		n := len(c.wire.Requests())
		c.setSource("two")
		c.label("b", false)
		if more := c.wire.Requests()[n:]; len(more) > 0 {
			b.Fatalf("Run has returned, and this was sent: %s", more[0].Verb)
		}
	})
	t.Behaviour("when everything is in order, nothing is written: not by verify, and not after a restart", func(b *check.B) {
		c := started(b, entry)
		c.change("a", func(secret *corev1.Secret) { secret.Labels["team"], secret.Annotations["note"] = "red", "mine" })
		c.verifyAll()
		c.stop()
		before := c.writesIn("a", "b")
		c.run()
		// Once another namespace has its copy, these have been looked at, too.
		c.targets("later")
		c.expect("one", "a", "b", "later")
		c.verifyAll()
		c.targets("last")
		c.expect("one", "a", "b", "later", "last")
		c.stop()
		if n := c.writesIn("a", "b") - before; n > 0 {
			b.Fatalf("everything was in order in two namespaces, and %d writes were sent there", n)
		}
	})
	t.Behaviour("what has happened while it was down is put in order", func(b *check.B) {
		c := started(b, entry)
		c.stop()
		c.setSource("two")
		c.label("b", false)
		c.targets("new")
		c.run()
		c.expect("two", "a", "new")
	})
	t.Behaviour("if the source was deleted meanwhile, no copy stays", func(b *check.B) {
		c := started(b, entry)
		c.stop()
		c.deleteSource()
		c.run()
		c.expect("")
	})
	t.Behaviour("two replicas come to the same, and then both rest", func(b *check.B) {
		c := started(b, entry)
		second := c.replica()
		second.run()
		c.story()
		c.targets("later")
		c.expect("two", "a", "later")
		// What the slower one was still about to send has ended when it has taken these.
		c.verifyAll()
		second.verifyAll()
		before := c.writesIn("a", "b") + second.writesIn("a", "b")
		c.verifyAll()
		second.verifyAll()
		c.targets("last")
		c.expect("two", "a", "later", "last")
		c.stop()
		second.stop()
		if n := c.writesIn("a", "b") + second.writesIn("a", "b") - before; n > 0 {
			b.Fatalf("everything was in order in two namespaces, and the replicas have sent %d writes there", n)
		}
	})
}

// faults checks it with requests that fail, watches that end or are silent, and crashes.
func faults(t *check.T, entry Entry) {
	for _, kind := range []struct {
		name  string
		times int
		is    func(c *cluster, r kube.Request) bool
	}{
		{"lists and watches", 3, func(_ *cluster, r kube.Request) bool { return kube.Lists(r) || kube.Watches(r) }},
		{"writes", 6, func(c *cluster, r kube.Request) bool { return kube.Writes(r) && r.Namespace == c.namespaces["a"] }},
	} {
		t.Behaviour(kind.name+" that fail are repeated", func(b *check.B) {
			c := newCluster(b, entry)
			c.targets("a", "b")
			c.createSource("one", nil)
			c.wire.Fail(kind.times, func(r kube.Request) bool { return kind.is(c, r) })
			c.run()
			c.expect("one", "a", "b")
			c.setSource("two")
			c.expect("two", "a", "b")
		})
	}
	t.Behaviour("while reads fail, no copy is deleted", func(b *check.B) {
		c := started(b, entry)
		c.stop()
		before := c.writesIn("a", "b")
		c.wire.Fail(3, kube.Reads)
		c.run()
		c.targets("later")
		c.expect("one", "a", "b", "later")
		c.wire.Fail(1, func(r kube.Request) bool { return r.Verb == "get" })
		c.targets("last")
		c.expect("one", "a", "b", "later", "last")
		c.stop()
		if n := c.writesIn("a", "b") - before; n > 0 {
			b.Fatalf("some reads have failed, and %d writes were sent to two namespaces where nothing had changed", n)
		}
	})
	t.Behaviour("watches that end are begun again", func(b *check.B) {
		c := started(b, entry)
		c.wire.CutWatches()
		c.setSource("two")
		c.label("b", false)
		c.wire.Release()
		c.expect("two", "a")
	})
	for _, inStream := range []bool{true, false} {
		where := map[bool]string{true: "in the stream", false: "as the status of the response"}[inStream]
		t.Behaviour("what happens before a 410 "+where+" is put in order", func(b *check.B) {
			c := started(b, entry)
			c.wire.Gap(inStream, func() {
				c.setSource("two")
				c.label("b", false)
				c.targets("new")
			})
			c.expect("two", "a", "new")
		})
	}
	t.Behaviour("what a silent watch has not brought is put in order by verify", func(b *check.B) {
		c := started(b, entry)
		c.watching()
		c.wire.SilenceWatches(kube.Watches)
		c.setSource("two")
		c.label("b", false)
		c.verifyAll()
		c.expect("two", "a")
	})
	t.Behaviour("what was cached before verify is not used any more", func(b *check.B) {
		c := started(b, entry)
		c.watching()
		c.wire.SilenceWatches(func(r kube.Request) bool { return r.Resource == "namespaces" })
		c.label("b", false)
		c.targets("new")
		c.verifyAll()
		c.expect("one", "a", "new")
		for _, name := range []string{"a", "new"} {
			c.change(name, func(secret *corev1.Secret) { secret.Data = map[string][]byte{"word": []byte("changed")} })
			c.expect("one", "a", "new")
		}
	})
	t.Behaviour("nor is the source that was cached before", func(b *check.B) {
		c := started(b, entry)
		c.watching()
		c.wire.SilenceWatches(func(r kube.Request) bool { return r.Resource == "secrets" })
		c.setSource("two")
		c.verifyAll()
		c.expect("two", "a", "b")
		c.targets("new")
		c.expect("two", "a", "b", "new")
	})
	t.Behaviour("at whichever write it crashes, the next process comes to the same", func(b *check.B) {
		n := crashes(b, entry, 0, false)
		for number := 1; number <= n; number++ {
			for _, after := range []bool{false, true} {
				crashes(b, entry, number, after)
			}
		}
	})
}

// crashes goes through a story with a process that crashes at a write, and returns how many writes there were.
func crashes(b *check.B, entry Entry, number int, after bool) int {
	c := newCluster(b, entry)
	c.process = kube.NewProcess(b)
	c.wire.Before(c.process.Before)
	if number > 0 {
		c.process.CrashAt(number, after)
		c.crash = fmt.Sprintf("after a crash at write %d, %s: ", number, map[bool]string{false: "before it took effect", true: "which took effect"}[after])
		b.Event("the story anew: %s", c.crash)
	}
	c.targets("a", "b")
	c.createSource("one", nil)
	c.run()
	c.expect("one", "a", "b")
	c.story()
	c.stop()
	return len(c.wire.Requests("create", "update", "patch", "delete", "deletecollection"))
}

// story has a change of the source, of a namespace, and of a copy.
func (c *cluster) story() {
	c.setSource("two")
	c.expect("two", "a", "b")
	c.label("b", false)
	c.expect("two", "a")
	c.remove("a")
	c.expect("two", "a")
}
