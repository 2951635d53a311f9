package claim

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/exercises/internal/databases"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// replicas checks two replicas that work at the same time.
func replicas(t *check.T, entry Entry) {
	t.Behaviour("two replicas create one database for each claim, and delete it", func(b *check.B) {
		c := newCluster(b, entry)
		c.cloud.slow = 200 * time.Millisecond // so that they send their requests at the same time
		c.operator.Start()
		c.operator.Start()
		names := []string{"a", "b", "c"}
		for _, name := range names {
			c.claim(name, nil)
		}
		for _, name := range names {
			c.ready(name)
		}
		c.cloud.expect(3, 3)
		for _, name := range names {
			c.remove(name, background)
		}
		for _, name := range names {
			c.gone(name)
		}
		c.cloud.expect(3, 0)
	})
}

// inFlight checks a request for a creation that reaches the cloud after another replica has deleted the claim.
func inFlight(t *check.T, entry Entry) {
	t.Behaviour("a creation that is in flight in one replica while the other one deletes leaves no database", func(b *check.B) {
		c := newCluster(b, entry)
		hold := make(chan time.Time)
		c.cloud.hold = hold
		c.operator.Start()
		c.claim("a", nil)
		c.eventually(func() string {
			held := false
			if c.cloud.set(func(cloud *cloud) { held = cloud.held }); !held {
				return "no database is created"
			}
			return ""
		})
		c.remove("a", background)
		c.operator.Start()
		// An operator may wait for the creation, for as long as it takes.
		began := time.Now()
		c.eventually(func() string {
			if (c.getClaim("a") != nil || c.getDatabase("a") != nil) && time.Since(began) < b.Patience(patience/2) {
				return "the claim was deleted, and is still there"
			}
			return ""
		})
		b.Event("the creation arrives")
		close(hold)
		c.gone("a")
		c.eventually(func() string {
			if _, live := c.cloud.counts(); live > 0 {
				return "the creation was in flight while the claim was deleted, and its database is still there"
			}
			return ""
		})
		if created, _ := c.cloud.counts(); created > 1 {
			b.Fatalf("there was one claim, and %d databases were created", created)
		}
	})
}

// behind checks replicas whose caches lag behind the API server.
func behind(t *check.T, entry Entry) {
	t.Behaviour("a replica that has not noticed the deletion of a claim creates nothing for it", func(b *check.B) {
		c, _ := started(b, entry)
		old := c.operator.Processes[0]
		old.Wire.SilenceWatches(func(r kube.Request) bool { return r.Resource == "databaseclaims" })
		ahead := c.operator.Start()
		c.remove("a", background)
		c.gone("a")
		ahead.End()
		for _, name := range []string{"marker", "another-marker"} {
			c.database(name)
			c.eventually(func() string { return c.databaseReport(name, metav1.ConditionFalse, databases.ReasonNotOwned) })
		}
		// What it may have created in vain the garbage collector deletes.
		c.cloud.expect(1, 0)
	})
	t.Behaviour("a Database that the cache lacks is not created again, not lost, and not that of another", func(b *check.B) {
		c, _ := started(b, entry)
		o := c.operator.Processes[0]
		o.Wire.SilenceWatches(func(r kube.Request) bool { return r.Resource == "databases" })
		c.claim("b", nil)
		c.eventually(func() string {
			if c.getDatabase("b") == nil {
				return "there is no Database"
			}
			return ""
		})
		c.touch("b")
		// Once another claim has been looked at, this one has been, too.
		c.claim("c", nil)
		c.eventually(func() string {
			if claim := c.getClaim("c"); claim == nil || len(claim.Status.Conditions) == 0 {
				return "the claim c has no conditions"
			}
			return ""
		})
		for _, name := range []string{"b", "c"} {
			for _, reason := range []string{databases.ReasonLost, databases.ReasonNameConflict} {
				if c.claimReport(name, metav1.ConditionFalse, reason) == "" {
					b.Fatalf("the Database of the claim %s is there, and Ready is False, %s", name, reason)
				}
			}
		}
		o.Wire.CutWatches()
		o.Wire.Release()
		c.ready("b")
		c.ready("c")
		c.cloud.expect(3, 3)
	})
}
