package page

import (
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// budget is how many writes a new Page may cost. A finalizer, three objects, and two or three conditions with their Events are ten; the
// others are for a cache that is behind.
const budget = 16

// rests checks that little is done, and nothing where all is in order.
func rests(t *check.T, work check.Work[Entry]) {
	t.Behaviour("until a Page is ready, at most 16 writes are sent, and its record is written once", func(b *check.B) {
		c := newCluster(b, work)
		o := c.operator.Start()
		c.page("a", nil)
		c.ready("a")
		n := 0
		for _, request := range o.Wire.Requests() {
			if kube.Writes(request) {
				n++
			}
		}
		if n > budget {
			b.Fatalf("more than %d writes were sent", budget)
		}
		if n := c.dns.sent("put"); n != 1 {
			b.Fatalf("the record was written %d times", n)
		}
	})
	t.Behaviour("when everything is in order, nothing is written, and DNS is hardly asked, not even after a restart", func(b *check.B) {
		c := started(b, work)
		puts, gets := c.dns.sent("put"), c.dns.sent("get")
		o := c.operator.Restart()
		c.touch("a")
		// Once other Pages are ready, this one has been looked at, too.
		for _, name := range []string{"b", "c"} {
			c.page(name, nil)
			c.ready(name)
		}
		for _, request := range o.Wire.Requests() {
			if kube.Writes(request) && request.Name == "a" {
				b.Fatalf("everything was in order, and this was sent: %s", request)
			}
		}
		if n := c.dns.sent("put") - puts; n != 2 {
			b.Fatalf("there are two new Pages, and records were written %d times", n)
		}
		if c.dns.sent("get")-gets > 60 {
			b.Fatalf("everything was in order, and the DNS service was asked more than 60 times")
		}
	})
}

// faults checks it with requests that fail, and with a process that crashes.
func faults(t *check.T, work check.Work[Entry]) {
	t.Behaviour("requests to the API server that fail are sent again", func(b *check.B) {
		c := newCluster(b, work)
		var failed atomic.Int64
		c.operator.Intercept(func(request kube.Request) error {
			// Events are sent again by the recorder, not at once.
			if kube.Writes(request) && request.Resource != "events" && failed.Add(1)%2 == 1 && failed.Load() < 12 {
				return kube.ErrAway
			}
			return nil
		})
		c.operator.Start()
		c.page("a", nil)
		c.ready("a")
		c.remove()
		c.gone(hostname("a"))
	})
	t.Behaviour("a DNS service that is down is not asked all the time", func(b *check.B) {
		c := newCluster(b, work)
		c.dns.down = true
		o := c.operator.Start()
		c.page("a", nil)
		c.notReady("a", pages.ReasonDNSError)
		asked, written := c.dns.sent(""), len(o.Wire.Requests("create", "update", "patch"))
		// A slow machine sends less in this time, so that nothing that is right fails.
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if c.dns.sent("")-asked > 40 {
				b.Fatalf("the DNS service is down, and was asked more than 40 times in three seconds")
			}
			if len(o.Wire.Requests("create", "update", "patch"))-written > 40 {
				b.Fatalf("the DNS service is down, and more than 40 writes were sent in three seconds")
			}
		}
	})
	t.Behaviour("requests to the DNS service that take effect and time out do no harm", func(b *check.B) {
		c := newCluster(b, work)
		c.dns.late = 2
		c.operator.Start()
		c.page("a", nil)
		c.ready("a")
		c.dns.set(func(s *service) { s.late = 2 })
		c.remove()
		c.gone(hostname("a"))
		c.named()
	})
}

// unwritten checks that an object that cannot be written is not overlooked.
func unwritten(t *check.T, work check.Work[Entry]) {
	for i, resource := range []string{"configmaps", "deployments", "services"} {
		t.Behaviour("a Page whose "+kinds[i].name+" cannot be written is not ready, and the write is tried again", func(b *check.B) {
			c := newCluster(b, work)
			c.rejected(resource, func() {
				c.operator.Start()
				c.page("a", nil)
			})
			c.ready("a")
			if i < 2 {
				c.rejected(resource, func() {
					c.change("a", "the Markdown", func(page *pages.Page) { page.Spec.Markdown = "# Another" })
				})
				c.ready("a")
			}
		})
	}
}

// rejected lets writes of a resource fail until four have, from what is done first. Meanwhile the Page a must not be ready.
func (c *cluster) rejected(resource string, first func()) {
	var failed atomic.Int64
	c.b.Event("the API server rejects writes of %s", resource)
	c.operator.Intercept(func(request kube.Request) error {
		if kube.Writes(request) && request.Resource == resource {
			failed.Add(1)
			return kube.ErrAway
		}
		return nil
	})
	first()
	c.eventually(func() string {
		if c.report("a", metav1.ConditionTrue, pages.ReasonServing) == "" {
			c.b.Fatalf("writes of %s fail, and the Page is ready", resource)
		}
		if n := failed.Load(); n < 4 {
			return fmt.Sprintf("writes of %s fail, and %d were sent", resource, n)
		}
		return ""
	})
	c.b.Event("the API server accepts them again")
	c.operator.Intercept(nil)
}

// crashes checks that a Page is served after a crash at any point. Crashes after each request are enough: the state before
// a request is the state after the request before it.
func crashes(t *check.T, work check.Work[Entry]) {
	each := func(b *check.B, what string, prepare func(c *cluster, number int)) {
		for number, more := 1, true; more; number++ {
			b.Event("the story anew: a crash after %s %d", what, number)
			c := newCluster(b, work)
			prepare(c, number)
			c.operator.Start()
			c.page("a", nil)
			c.ready("a")
			c.change("a", "the hostname", func(page *pages.Page) { page.Spec.Hostname = "moved.example.com" })
			c.ready("a")
			c.named("moved.example.com")
			c.remove()
			c.gone("moved.example.com")
			c.named()
			c.operator.Stop()
			more = c.operator.Crashed
		}
	}
	t.Behaviour("after whichever write it crashes, the Page becomes ready, and in the end no record is left", func(b *check.B) {
		each(b, "write", func(c *cluster, number int) { c.operator.CrashWrite = number })
	})
	t.Behaviour("after whichever request to the DNS service it crashes, the same holds", func(b *check.B) {
		each(b, "the request to the DNS service", func(c *cluster, number int) { c.dns.crash = number })
	})
}
