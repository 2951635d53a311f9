// Package claim is the capstone of stage 3: two kinds, and a cloud whose databases are not to be created twice.
package claim

import (
	"sync/atomic"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/workbook/03-flux/exercises/internal/databases"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(mgr ctrl.Manager, cloud databases.Cloud, defaults databases.Defaults) error

var (
	older = databases.Defaults{SizeGB: 10, Class: "small"}
	newer = databases.Defaults{SizeGB: 50, Class: "medium"}
	// ofOlder and ofNewer are the specs of claims that leave out what they can.
	ofOlder = databases.DatabaseSpec{Engine: "postgres", SizeGB: 10, Class: "small", DeletionPolicy: databases.Delete}
	ofNewer = databases.DatabaseSpec{Engine: "postgres", SizeGB: 50, Class: "medium", DeletionPolicy: databases.Delete}
)

// Check plays users, the cloud and faults, and looks at both kinds and at the databases in the cloud.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a claim gets a Database, which gets a database in the cloud, and both are ready", func(b *check.B) {
		c := newCluster(b, work.Entry)
		c.operator.Start()
		c.claim("a", nil)
		c.specIs("a", c.ready("a"), ofOlder)
		c.cloud.expect(1, 1)
	})
	if !ok {
		return
	}
	for _, behaviours := range []func(*check.T, Entry){
		specs, reports, others, names, deletions, policies, orphans, again, held, added, losses, unwritten,
		vanished, rests, faults, crashes, deletedWhileDown, replicas, inFlight, behind,
	} {
		behaviours(t, work.Entry)
	}
}

// started is a cluster with an operator, and a claim that is ready.
func started(b *check.B, entry Entry) (*cluster, *record) {
	c := newCluster(b, entry)
	c.operator.Start()
	c.claim("a", nil)
	return c, c.ready("a")
}

// specs checks what a database is created with, and what stays.
func specs(t *check.T, entry Entry) {
	t.Behaviour("what a claim sets comes before the defaults, and each claim has a database of its own", func(b *check.B) {
		c, first := started(b, entry)
		c.claim("b", func(claim *databases.DatabaseClaim) {
			claim.Spec = databases.DatabaseClaimSpec{Engine: "mysql", SizeGB: 20, Class: "large", DeletionPolicy: databases.Retain}
		})
		second := c.ready("b")
		c.specIs("a", first, ofOlder)
		c.specIs("b", second, databases.DatabaseSpec{Engine: "mysql", SizeGB: 20, Class: "large", DeletionPolicy: databases.Retain})
		c.cloud.expect(2, 2)
	})
	t.Behaviour("an operator with other defaults leaves what is there as it is, and a new claim gets the new ones", func(b *check.B) {
		c, first := started(b, entry)
		c.operator.Stop()
		c.defaults = newer
		c.operator.Start()
		c.claim("b", nil)
		c.specIs("b", c.ready("b"), ofNewer)
		c.setPolicy("a", databases.Retain)
		c.ready("a")
		kept := ofOlder
		kept.DeletionPolicy = databases.Retain
		c.specIs("a", first, kept)
		c.cloud.expect(2, 2)
	})
	t.Behaviour("a Database that an operator with other defaults has left without a database gets what it says", func(b *check.B) {
		c := newCluster(b, entry)
		c.cloud.crash = func(_ int, verb string) bool { return verb == "create" }
		want := ofNewer
		c.operator.WhileDown = func() {
			if database := c.getDatabase("a"); database != nil {
				want = database.Spec
			}
			c.defaults = newer
		}
		c.operator.Start()
		c.claim("a", nil)
		found := c.ready("a")
		c.specIs("a", found, want)
		c.cloud.expect(1, 1)
	})
	t.Behaviour("what is set later in a claim that left it out changes nothing", func(b *check.B) {
		c, found := started(b, entry)
		c.change("a", "sizeGB and class, which it had left out", func(claim *databases.DatabaseClaim) {
			claim.Spec.SizeGB, claim.Spec.Class = 99, "large"
		})
		c.ready("a")
		c.specIs("a", found, ofOlder)
		c.cloud.expect(1, 1)
	})
}

// reports checks the conditions of both kinds.
func reports(t *check.T, entry Entry) {
	t.Behaviour("while the cloud creates a database, neither is ready", func(b *check.B) {
		c := newCluster(b, entry)
		c.cloud.creating = true
		c.operator.Start()
		c.claim("a", nil)
		c.bothAre(databases.ReasonCreating)
		b.Event("the database becomes available")
		c.cloud.set(func(cloud *cloud) { cloud.creating = false })
		c.ready("a")
		c.cloud.expect(1, 1)
	})
	t.Behaviour("a change of the deletion policy arrives, and both report about it", func(b *check.B) {
		c, found := started(b, entry)
		for _, policy := range []databases.DeletionPolicy{databases.Retain, databases.Delete} {
			c.setPolicy("a", policy)
			c.ready("a")
			want := ofOlder
			want.DeletionPolicy = policy
			c.specIs("a", found, want)
		}
	})
	t.Behaviour("what a Database reported about an earlier generation does not make the claim ready", func(b *check.B) {
		c, _ := started(b, entry)
		var failed atomic.Int64
		b.Event("from now on the API server rejects writes of the status of Databases")
		c.operator.Intercept(func(request kube.Request) error {
			if request.Resource == "databases/status" && kube.Writes(request) {
				failed.Add(1)
				return kube.ErrAway
			}
			return nil
		})
		began := time.Now()
		c.setPolicy("a", databases.Retain)
		// An operator need not report about the claim then.
		c.eventually(func() string {
			claim := c.getClaim("a")
			ready := apimeta.FindStatusCondition(claim.Status.Conditions, databases.ConditionReady)
			enough := failed.Load() >= 8 || failed.Load() >= 3 && time.Since(began) > b.Patience(patience/4)
			if !enough && ready.ObservedGeneration != claim.Generation {
				return "the claim was changed, and neither its status is written nor that of its Database"
			}
			if ready.ObservedGeneration == claim.Generation && ready.Status == metav1.ConditionTrue {
				b.Fatalf("Ready of the claim is True, and that of the Database is about an earlier generation")
			}
			return ""
		})
		b.Event("the API server accepts them again")
		c.operator.Intercept(nil)
		c.ready("a")
	})
}

// others checks that what is not the operator's is left alone.
func others(t *check.T, entry Entry) {
	t.Behaviour("a Database that no claim controls gets no database, and says so", func(b *check.B) {
		c := newCluster(b, entry)
		c.operator.Start()
		database := c.database("a")
		c.eventually(func() string { return c.databaseReport("a", metav1.ConditionFalse, databases.ReasonNotOwned) })
		c.untouched(database)
		c.cloud.expect(0, 0)
	})
	t.Behaviour("a claim leaves a Database of its name alone that it does not control, until that is deleted", func(b *check.B) {
		c, _ := started(b, entry)
		owner := *metav1.NewControllerRef(c.getClaim("a"), databases.SchemeGroupVersion.WithKind("DatabaseClaim"))
		before := []*databases.Database{c.database("b"), c.database("c", owner)}
		for _, database := range before {
			c.claim(database.Name, nil)
			c.claimIs(database.Name, databases.ReasonNameConflict)
			c.setPolicy(database.Name, databases.Retain)
			c.claimIs(database.Name, databases.ReasonNameConflict)
			c.untouched(database)
		}
		c.cloud.expect(1, 1)
		for _, database := range before {
			c.removeDatabase(database.Name)
			c.ready(database.Name)
		}
		c.cloud.expect(3, 3)
	})
}

// names checks that a Database that only has the name of the claim is not used.
func names(t *check.T, entry Entry) {
	t.Behaviour("a Database that takes the name just before the claim's is created is left alone", func(b *check.B) {
		c := newCluster(b, entry)
		var taken atomic.Pointer[databases.Database]
		c.operator.Intercept(func(request kube.Request) error {
			if taken.Load() == nil && request.Resource == "databases" && kube.Writes(request) {
				taken.Store(c.database("a"))
			}
			return nil
		})
		c.operator.Start()
		c.claim("a", nil)
		c.claimIs("a", databases.ReasonNameConflict)
		c.untouched(taken.Load())
		c.cloud.expect(0, 0)
	})
	t.Behaviour("the claim of such a name is deleted without it", func(b *check.B) {
		c := newCluster(b, entry)
		c.operator.Start()
		database := c.database("a")
		c.claim("a", nil)
		c.claimIs("a", databases.ReasonNameConflict)
		c.remove("a", background)
		c.eventually(func() string {
			if c.getClaim("a") != nil {
				return "the claim was deleted, and is still there"
			}
			return ""
		})
		c.untouched(database)
	})
	t.Behaviour("a Database that takes the name just before the claim's is deleted is left alone", func(b *check.B) {
		c, _ := started(b, entry)
		var taken atomic.Pointer[databases.Database]
		c.operator.Intercept(func(request kube.Request) error {
			if taken.Load() == nil && request.Resource == "databases" && kube.Deletes(request) {
				c.replaceDatabase("a")
				taken.Store(c.getDatabase("a"))
			}
			return nil
		})
		c.remove("a", background)
		c.eventually(func() string {
			if c.getClaim("a") != nil {
				return "the claim was deleted, and is still there"
			}
			return ""
		})
		if before := taken.Load(); before != nil {
			c.untouched(before)
		}
	})
}
