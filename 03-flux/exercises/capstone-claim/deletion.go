package claim

import (
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/exercises/internal/databases"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// deletions checks what becomes of a database whose claim is deleted.
func deletions(t *check.T, entry Entry) {
	t.Behaviour("a claim that is deleted takes its Database and its database along", func(b *check.B) {
		c, _ := started(b, entry)
		c.claim("b", nil)
		c.ready("b")
		c.remove("a", background)
		c.remove("b", foreground)
		c.gone("a")
		c.gone("b")
		c.cloud.expect(2, 0)
	})
	t.Behaviour("with the policy Retain only the database stays", func(b *check.B) {
		c := newCluster(b, entry)
		c.operator.Start()
		for _, name := range []string{"a", "b"} {
			c.claim(name, retained)
			c.ready(name)
		}
		c.remove("a", background)
		c.remove("b", foreground)
		c.gone("a")
		c.gone("b")
		c.cloud.expect(2, 2)
	})
}

// policies checks that no policy is forgotten.
func policies(t *check.T, entry Entry) {
	for _, propagation := range []metav1.DeletionPropagation{background, foreground} {
		t.Behaviour("the policy that a claim has when it is deleted is the one that counts: "+string(propagation), func(b *check.B) {
			c, stays := started(b, entry)
			c.claim("b", retained)
			goes := c.ready("b")
			c.operator.Stop()
			c.setPolicy("a", databases.Retain)
			c.setPolicy("b", databases.Delete)
			c.remove("a", propagation)
			c.remove("b", propagation)
			c.collect()
			c.operator.Start()
			c.gone("a")
			c.gone("b")
			c.cloud.set(func(*cloud) {
				switch {
				case stays.deleted:
					b.Errorf("the policy was changed to Retain, the claim was deleted, and the database was deleted, too")
				case !goes.deleted:
					b.Errorf("the policy was changed to Delete, the claim was deleted, and the database is still there")
				}
			})
			c.cloud.expect(2, 1)
		})
	}
}

// orphans checks that orphan is respected.
func orphans(t *check.T, entry Entry) {
	t.Behaviour("a claim that is deleted with orphan leaves its Database and its database as they are", func(b *check.B) {
		c, _ := started(b, entry)
		c.late = true
		c.remove("a", orphan)
		// Once another claim is ready, this one has been looked at, too.
		c.claim("b", nil)
		c.ready("b")
		c.late = false
		c.eventually(func() string {
			if c.getClaim("a") != nil {
				return "the claim was deleted with orphan, and is still there"
			}
			return ""
		})
		if database := c.getDatabase("a"); database == nil || database.DeletionTimestamp != nil {
			b.Fatalf("the claim was deleted with orphan, and its Database was deleted, too")
		}
		c.cloud.expect(2, 2)
		c.claim("a", nil)
		c.claimIs("a", databases.ReasonNameConflict)
		c.removeDatabase("a")
		c.ready("a")
		c.cloud.expect(3, 2)
	})
}

// again checks that what is created later under the same name has nothing of the earlier one.
func again(t *check.T, entry Entry) {
	for _, policy := range []databases.DeletionPolicy{databases.Delete, databases.Retain} {
		t.Behaviour("a claim of the same name that is created later gets another database: "+string(policy), func(b *check.B) {
			c := newCluster(b, entry)
			c.operator.Start()
			create := func() {
				c.claim("a", func(claim *databases.DatabaseClaim) { claim.Spec.DeletionPolicy = policy })
			}
			create()
			first := c.ready("a")
			c.remove("a", background)
			c.gone("a")
			create()
			if second := c.ready("a"); second == first {
				b.Fatalf("the new claim has the database of the deleted one")
			}
			live := 2
			if policy == databases.Delete {
				live = 1
			}
			c.cloud.expect(2, live)
		})
	}
}

// other is the finalizer of another controller.
const other = "example.com/backup"

// held checks deletions that take long.
func held(t *check.T, entry Entry) {
	t.Behaviour("a claim that another finalizer holds keeps that one, and gets no other Database", func(b *check.B) {
		c := newCluster(b, entry)
		c.operator.Start()
		c.claim("a", func(claim *databases.DatabaseClaim) { claim.Finalizers = []string{other} })
		c.ready("a")
		c.remove("a", background)
		c.eventually(func() string {
			claim := c.getClaim("a")
			switch {
			case claim == nil || !slices.Contains(claim.Finalizers, other):
				b.Fatalf("the finalizer of another controller was removed")
			case c.getDatabase("a") != nil:
				return "the claim is being deleted, and the Database is still there"
			case len(claim.Finalizers) > 1:
				return "the claim is being deleted, nothing is left to be done for it, and it has a finalizer of the operator"
			}
			return ""
		})
		c.touch("a")
		c.claim("b", nil)
		c.ready("b")
		if c.getDatabase("a") != nil {
			b.Fatalf("the claim is being deleted, and has got another Database")
		}
		c.cloud.expect(2, 1)
		c.change("a", "the finalizer of the other controller is removed", func(claim *databases.DatabaseClaim) { claim.Finalizers = nil })
		c.gone("a")
	})
	t.Behaviour("while the cloud is down a claim that is deleted stays, and later it is deleted", func(b *check.B) {
		c, _ := started(b, entry)
		c.cloud.isDown(true)
		before := c.cloud.sent("")
		c.remove("a", background)
		c.eventually(func() string {
			if c.cloud.sent("") < before+3 {
				return "the cloud is down, the claim was deleted, and the cloud was not asked three times"
			}
			return ""
		})
		if c.getClaim("a") == nil || c.getDatabase("a") == nil {
			b.Fatalf("the database is still there, and nothing is left that remembers it")
		}
		c.cloud.isDown(false)
		c.gone("a")
		c.cloud.expect(1, 0)
	})
	t.Behaviour("a deletion that takes effect and times out is done", func(b *check.B) {
		c, _ := started(b, entry)
		c.cloud.set(func(cloud *cloud) { cloud.late = 1 })
		c.remove("a", background)
		c.gone("a")
		c.cloud.expect(1, 0)
	})
}

// added checks that finalizers of others stay, whenever they come.
func added(t *check.T, entry Entry) {
	t.Behaviour("a finalizer that another controller adds to a claim at the same time stays", func(b *check.B) {
		c := newCluster(b, entry)
		var once sync.Once
		c.operator.Intercept(func(request kube.Request) error {
			if request.Resource == "databaseclaims" && kube.Writes(request) {
				once.Do(func() {
					c.change("a", "another controller adds its finalizer", func(claim *databases.DatabaseClaim) {
						claim.Finalizers = append(claim.Finalizers, other)
					})
				})
			}
			return nil
		})
		c.operator.Start()
		c.claim("a", nil)
		c.ready("a")
		if finalizers := c.getClaim("a").Finalizers; !slices.Contains(finalizers, other) {
			b.Fatalf("another controller added its finalizer, and a write of the operator removed it: %v are left", finalizers)
		}
	})
}

// losses checks that nothing takes the place of what is gone.
func losses(t *check.T, entry Entry) {
	t.Behaviour("a claim whose Database was deleted has lost it, and gets no other one", func(b *check.B) {
		c, _ := started(b, entry)
		c.removeDatabase("a")
		c.claimIs("a", databases.ReasonLost)
		c.touch("a")
		c.operator.Restart()
		c.claim("b", nil)
		c.ready("b")
		c.claimIs("a", databases.ReasonLost)
		if c.getDatabase("a") != nil {
			b.Fatalf("the claim has got another Database")
		}
		c.cloud.expect(2, 1)
		c.remove("a", background)
		c.gone("a")
	})
}

// vanished checks what the cloud has lost.
func vanished(t *check.T, entry Entry) {
	t.Behaviour("a database that has vanished from the cloud is lost, and none is created in its place", func(b *check.B) {
		c, found := started(b, entry)
		c.operator.Stop()
		c.cloud.lose(found)
		c.cloud.forget()
		c.operator.Start()
		c.bothAre(databases.ReasonLost)
		c.touch("a")
		c.claim("b", nil)
		c.ready("b")
		c.bothAre(databases.ReasonLost)
		c.cloud.expect(2, 1)
		c.remove("a", background)
		c.gone("a")
		c.cloud.expect(2, 1)
	})
}

// unwritten checks that the operator does not rely on a record that is not there yet.
func unwritten(t *check.T, entry Entry) {
	t.Behaviour("a claim about which nothing can be written does not get a second database", func(b *check.B) {
		c := newCluster(b, entry)
		var failed atomic.Int64
		b.Event("the API server rejects writes of the status of claims")
		c.operator.Intercept(func(request kube.Request) error {
			if request.Resource == "databaseclaims/status" && kube.Writes(request) {
				failed.Add(1)
				return kube.ErrAway
			}
			return nil
		})
		c.operator.Start()
		c.claim("a", nil)
		c.eventually(func() string {
			if created, _ := c.cloud.counts(); c.getDatabase("a") == nil || created == 0 && failed.Load() < 4 {
				return "neither is a database created nor is the status of the claim written"
			}
			return ""
		})
		first := c.getDatabase("a").UID
		c.removeDatabase("a")
		c.eventually(func() string {
			if database := c.getDatabase("a"); database != nil && database.UID == first {
				return "the Database was deleted, and is still there"
			}
			return ""
		})
		b.Event("the API server accepts them again")
		c.operator.Intercept(nil)
		c.eventually(func() string {
			if c.claimReport("a", metav1.ConditionFalse, databases.ReasonLost) == "" {
				return ""
			}
			return c.claimReport("a", metav1.ConditionTrue, databases.ReasonAvailable)
		})
		if created, _ := c.cloud.counts(); created > 1 {
			b.Fatalf("there was one claim, and %d databases were created", created)
		}
	})
}
