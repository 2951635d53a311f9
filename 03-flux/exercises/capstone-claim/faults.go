package claim

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/exercises/internal/databases"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// rests checks that nothing is done where all is in order.
func rests(t *check.T, entry Entry) {
	t.Behaviour("when everything is in order, nothing is written, and the cloud is hardly asked, not even after a restart", func(b *check.B) {
		c, found := started(b, entry)
		before := c.cloud.sent("get "+found.ID) + c.cloud.sent("list")
		o := c.operator.Restart()
		c.touch("a")
		// Once other claims are ready, this one has been looked at, too.
		c.claim("later", nil)
		c.ready("later")
		c.claim("last", nil)
		c.ready("last")
		for _, request := range o.Wire.Requests() {
			if kube.Writes(request) && request.Name == "a" {
				b.Fatalf("everything was in order, and this was sent: %s", request)
			}
		}
		if n := c.cloud.sent("get "+found.ID) + c.cloud.sent("list") - before; n > 40 {
			b.Fatalf("everything was in order, and the cloud was asked more than 40 times")
		}
		c.cloud.expect(3, 3)
	})
	t.Behaviour("a day later, when the cloud has forgotten all tokens, nothing is created", func(b *check.B) {
		c, _ := started(b, entry)
		c.cloud.forget()
		c.touch("a")
		c.operator.Restart()
		c.setPolicy("a", databases.Retain)
		c.ready("a")
		c.claim("b", nil)
		c.ready("b")
		c.cloud.expect(2, 2)
	})
}

// faults checks it with a cloud that fails.
func faults(t *check.T, entry Entry) {
	t.Behaviour("while the cloud is down, both say so, and later they are ready", func(b *check.B) {
		c := newCluster(b, entry)
		c.cloud.down = true
		c.operator.Start()
		c.claim("a", nil)
		c.bothAre(databases.ReasonCloudError)
		c.cloud.expect(0, 0)
		c.cloud.isDown(false)
		c.ready("a")
		c.cloud.expect(1, 1)
	})
	t.Behaviour("a cloud that is down is not asked all the time", func(b *check.B) {
		c := newCluster(b, entry)
		c.cloud.down = true
		o := c.operator.Start()
		c.claim("a", nil)
		c.bothAre(databases.ReasonCloudError)
		asked, written := c.cloud.sent(""), len(o.Wire.Requests("create", "update", "patch"))
		// A slow machine sends less in this time, so that nothing that is right fails.
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if c.cloud.sent("")-asked > 40 {
				b.Fatalf("the cloud is down, and was asked more than 40 times in three seconds")
			}
			if len(o.Wire.Requests("create", "update", "patch"))-written > 40 {
				b.Fatalf("the cloud is down, and more than 40 writes were sent in three seconds")
			}
		}
	})
	t.Behaviour("creations that take effect and time out are repeated, and create one database", func(b *check.B) {
		c := newCluster(b, entry)
		c.cloud.late = 2
		c.operator.Start()
		c.claim("a", nil)
		c.ready("a")
		c.cloud.expect(1, 1)
	})
}

// crashes checks that one database is created, and deleted, whatever request the process crashes at.
func crashes(t *check.T, entry Entry) {
	story := func(b *check.B, prepare func(c *cluster)) bool {
		c := newCluster(b, entry)
		prepare(c)
		c.operator.Start()
		c.claim("a", nil)
		c.ready("a")
		c.cloud.expect(1, 1)
		c.remove("a", background)
		c.gone("a")
		c.cloud.expect(1, 0)
		c.operator.Stop()
		return c.operator.Crashed
	}
	each := func(b *check.B, what string, prepare func(c *cluster, number int, after bool)) {
		for _, after := range []bool{false, true} {
			for number, more := 1, true; more; number++ {
				b.Event("the story anew: a crash at %s %d, after it took effect: %t", what, number, after)
				more = story(b, func(c *cluster) { prepare(c, number, after) })
			}
		}
	}
	t.Behaviour("at whichever write it crashes, there is one database, and in the end none", func(b *check.B) {
		for _, of := range []string{"databaseclaims", "databases"} {
			each(b, "the write to "+of, func(c *cluster, number int, after bool) {
				c.operator.CrashWrite, c.operator.CrashAfter, c.operator.CrashOf = number, after, of
			})
		}
	})
	t.Behaviour("at whichever request to the cloud it crashes, there is one database, and in the end none", func(b *check.B) {
		each(b, "the request to the cloud", func(c *cluster, number int, after bool) {
			c.cloud.crash = func(n int, _ string) bool { return n == number }
			c.cloud.crashAfter = after
		})
	})
	t.Behaviour("at whichever request it crashes, and starts a day later, there is one database, and in the end none", func(b *check.B) {
		// What takes effect, and is not recorded, is what a day makes dangerous.
		for number, more := 1, true; more; number++ {
			b.Event("the story anew: a crash after the request to the cloud %d", number)
			more = story(b, func(c *cluster) {
				c.cloud.crash = func(n int, _ string) bool { return n == number }
				c.cloud.crashAfter, c.operator.WhileDown = true, c.cloud.forget
			})
		}
	})
}

// deletedWhileDown checks that nothing is left of a claim that is deleted between a crash and the restart.
func deletedWhileDown(t *check.T, entry Entry) {
	for _, propagation := range []metav1.DeletionPropagation{background, foreground} {
		t.Behaviour("what was created just before a crash is deleted with the claim: "+string(propagation), func(b *check.B) {
			c := newCluster(b, entry)
			c.cloud.crash = func(_ int, verb string) bool { return verb == "create" }
			c.cloud.crashAfter = true
			c.operator.WhileDown = func() {
				c.remove("a", propagation)
				c.collect()
				c.collect()
			}
			c.operator.Start()
			c.claim("a", nil)
			c.eventually(func() string {
				if !c.operator.Crashed {
					return "no database is created"
				}
				return ""
			})
			c.gone("a")
			c.claim("b", nil)
			c.ready("b")
			c.cloud.expect(2, 1)
		})
	}
}
