package page

import (
	"slices"
	"sync/atomic"
	"time"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// deletions checks what becomes of the record.
func deletions(t *check.T, work check.Work[Entry]) {
	t.Behaviour("no record is written before something holds the Page that remembers it", func(b *check.B) {
		c := newCluster(b, work)
		var early atomic.Bool
		c.dns.onPut = func(pages.Record) {
			if page := c.getPage("a"); page == nil || len(page.Finalizers) == 0 {
				early.Store(true)
			}
		}
		c.operator.Start()
		c.page("a", nil)
		c.ready("a")
		if early.Load() {
			b.Fatalf("the record was written, and the Page had no finalizer")
		}
	})
	t.Behaviour("a Page that is deleted takes its record along, and no other", func(b *check.B) {
		c := started(b, work)
		c.page("b", nil)
		c.ready("b")
		c.remove()
		c.gone(hostname("a"))
		c.named(hostname("b"))
		b.Event("the garbage collector deletes what the Page has left")
		for _, k := range kinds {
			c.delete(k, "a")
		}
		c.page("a", nil)
		c.ready("a")
		c.named(hostname("a"), hostname("b"))
	})
	t.Behaviour("a Page that was deleted while the operator was down takes its record along", func(b *check.B) {
		c := started(b, work)
		c.operator.Stop()
		c.remove()
		c.operator.Start()
		c.gone(hostname("a"))
	})
	t.Behaviour("the record of a hostname that was changed while the operator was down is deleted with the Page", func(b *check.B) {
		c := started(b, work)
		c.operator.Stop()
		c.change("a", "the hostname", func(page *pages.Page) { page.Spec.Hostname = "moved.example.com" })
		c.remove()
		c.operator.Start()
		c.gone(hostname("a"))
		c.named()
	})
	t.Behaviour("while the DNS service is down a Page that is deleted stays, and later it is deleted", func(b *check.B) {
		c := started(b, work)
		c.dns.isDown(true)
		before := c.dns.sent("")
		c.remove()
		c.eventually(func() string {
			if c.dns.sent("") < before+3 {
				return "the DNS service is down, the Page was deleted, and the service was not asked three times"
			}
			return ""
		})
		if c.getPage("a") == nil {
			b.Fatalf("the record is still there, and nothing is left that remembers it")
		}
		c.dns.isDown(false)
		c.gone(hostname("a"))
	})
}

// held checks deletions that take long.
func held(t *check.T, work check.Work[Entry]) {
	const other = "example.com/backup"
	t.Behaviour("a Page that another finalizer holds keeps that one, and gets nothing any more", func(b *check.B) {
		c := newCluster(b, work)
		c.operator.Start()
		c.page("a", func(page *pages.Page) { page.Finalizers = []string{other} })
		c.ready("a")
		c.remove()
		c.eventually(func() string {
			page := c.getPage("a")
			switch {
			case page == nil || !slices.Contains(page.Finalizers, other):
				b.Fatalf("the finalizer of another controller was removed")
			case len(page.Finalizers) > 1:
				return "the Page is being deleted, nothing is left to be done for it, and it has a finalizer of the operator"
			}
			return ""
		})
		c.delete(kinds[2], "a")
		c.touch("a")
		c.settle("b")
		if c.get("a", kinds[2].empty()) {
			b.Fatalf("the Page is being deleted, and its Service was created again")
		}
		if _, found := c.dns.find(hostname("a")); found {
			b.Fatalf("the Page is being deleted, and there is a record of its hostname")
		}
		c.change("a", "the finalizer of the other controller is removed", func(page *pages.Page) { page.Finalizers = nil })
		c.gone(hostname("a"))
	})
	t.Behaviour("a replica that has not noticed the deletion of a Page writes no record", func(b *check.B) {
		c := started(b, work)
		old := c.operator.Processes[0]
		old.Wire.SilenceWatches(func(r kube.Request) bool { return r.Resource == "pages" })
		ahead := c.operator.Start()
		c.remove()
		c.gone(hostname("a"))
		ahead.End()
		before := len(old.Wire.Requests("get", "create", "update", "patch"))
		b.Event("an object of the Page changes, so that the replica looks at it")
		service := c.object(kinds[2], "a")
		c.patch(service, "an annotation", func() { service.SetAnnotations(map[string]string{"example.com/team": "web"}) })
		c.delete(kinds[0], "a")
		c.eventually(func() string {
			if len(old.Wire.Requests("get", "create", "update", "patch")) == before {
				return "a ConfigMap that a Page owns was deleted, and no request was sent"
			}
			return ""
		})
		// A record that is written comes at once: on a slow machine one that is wrong may not be seen, and nothing that is right fails.
		for end := time.Now().Add(b.Patience(time.Second)); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			c.named()
		}
	})
}
