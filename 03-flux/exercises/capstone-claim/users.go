package claim

import (
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/exercises/internal/databases"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

// claim creates a claim, as a user.
func (c *cluster) claim(name string, change func(*databases.DatabaseClaim)) {
	claim := &databases.DatabaseClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace},
		Spec:       databases.DatabaseClaimSpec{Engine: "postgres"},
	}
	if change != nil {
		change(claim)
	}
	c.b.Event("a user creates the claim %s", name)
	c.must("creating a claim", c.client.Create(c.b.Context(), claim))
}

// retained has the database stay when the claim is deleted.
func retained(claim *databases.DatabaseClaim) { claim.Spec.DeletionPolicy = databases.Retain }

// change changes a claim, as a user.
func (c *cluster) change(name, what string, change func(*databases.DatabaseClaim)) {
	c.b.Event("a user changes the claim %s: %s", name, what)
	c.must("changing a claim", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		claim := c.getClaim(name)
		if claim == nil {
			c.b.Fatalf("the claim %s is not there any more", name)
		}
		change(claim)
		return c.client.Update(c.b.Context(), claim)
	}))
}

func (c *cluster) setPolicy(name string, policy databases.DeletionPolicy) {
	c.change(name, "deletionPolicy "+string(policy), func(claim *databases.DatabaseClaim) { claim.Spec.DeletionPolicy = policy })
}

// touch changes what the operator has no interest in, three times.
func (c *cluster) touch(name string) {
	for n := range 3 {
		c.change(name, "a label", func(claim *databases.DatabaseClaim) {
			claim.Labels = map[string]string{"example.com/team": fmt.Sprintf("team-%d", n)}
		})
	}
}

// remove deletes a claim, as a user.
func (c *cluster) remove(name string, propagation metav1.DeletionPropagation) {
	c.b.Event("a user deletes the claim %s: %s", name, propagation)
	claim := c.getClaim(name)
	if claim == nil {
		c.b.Fatalf("the claim %s is not there any more", name)
	}
	c.must("deleting a claim", c.client.Delete(c.b.Context(), claim, client.PropagationPolicy(propagation)))
}

// database creates a Database, as a user who should not.
func (c *cluster) database(name string, owners ...metav1.OwnerReference) *databases.Database {
	c.b.Event("a user creates the Database %s, which has %d owners", name, len(owners))
	database := &databases.Database{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace, OwnerReferences: owners},
		Spec:       databases.DatabaseSpec{Engine: "mysql", SizeGB: 5, Class: "private", DeletionPolicy: databases.Delete},
	}
	c.must("creating a Database", c.client.Create(c.b.Context(), database))
	return database
}

// removeDatabase deletes a Database, as an administrator.
func (c *cluster) removeDatabase(name string) {
	c.b.Event("an administrator deletes the Database %s", name)
	database := c.getDatabase(name)
	if database == nil {
		c.b.Fatalf("the Database %s is not there any more", name)
	}
	c.must("deleting a Database", c.client.Delete(c.b.Context(), database))
}

// replaceDatabase deletes a Database without waiting for finalizers, and creates one that no claim controls, as an administrator.
func (c *cluster) replaceDatabase(name string) {
	c.b.Event("an administrator removes the finalizers of the Database %s", name)
	c.must("changing a Database", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		database := c.getDatabase(name)
		database.Finalizers = nil
		return c.client.Update(c.b.Context(), database)
	}))
	c.removeDatabase(name)
	c.database(name)
}

// getClaim returns a claim, or nil.
func (c *cluster) getClaim(name string) *databases.DatabaseClaim {
	claim := &databases.DatabaseClaim{}
	err := c.client.Get(c.b.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, claim)
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.must("reading a claim", err)
	return claim
}

// getDatabase returns a Database, or nil.
func (c *cluster) getDatabase(name string) *databases.Database {
	database := &databases.Database{}
	err := c.client.Get(c.b.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, database)
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.must("reading a Database", err)
	return database
}

// report says what is wrong with a condition Ready, or returns an empty string.
func report(what string, conditions []metav1.Condition, generation int64, status metav1.ConditionStatus, reason string) string {
	ready := apimeta.FindStatusCondition(conditions, databases.ConditionReady)
	switch {
	case ready == nil:
		return what + " has no condition Ready"
	case ready.Status != status || ready.Reason != reason:
		return fmt.Sprintf("Ready of %s is %s, %s, and should be %s, %s", what, ready.Status, ready.Reason, status, reason)
	case ready.ObservedGeneration != generation:
		return fmt.Sprintf("Ready of %s is %s, and is not about the generation that it has", what, ready.Status)
	}
	return ""
}

func (c *cluster) claimReport(name string, status metav1.ConditionStatus, reason string) string {
	claim := c.getClaim(name)
	if claim == nil {
		return "the claim " + name + " is not there"
	}
	return report("the claim "+name, claim.Status.Conditions, claim.Generation, status, reason)
}

func (c *cluster) databaseReport(name string, status metav1.ConditionStatus, reason string) string {
	database := c.getDatabase(name)
	if database == nil {
		return "the Database " + name + " is not there"
	}
	return report("the Database "+name, database.Status.Conditions, database.Generation, status, reason)
}

// claimIs waits until a claim is not ready, for a reason.
func (c *cluster) claimIs(name, reason string) {
	c.eventually(func() string { return c.claimReport(name, metav1.ConditionFalse, reason) })
}

// bothAre waits until the claim a and its Database are not ready, for the same reason.
func (c *cluster) bothAre(reason string) {
	c.eventually(func() string {
		if text := c.databaseReport("a", metav1.ConditionFalse, reason); text != "" {
			return text
		}
		return c.claimReport("a", metav1.ConditionFalse, reason)
	})
}

// ready waits until a claim and its Database are ready, and returns the database in the cloud.
func (c *cluster) ready(name string) *record {
	c.eventually(func() string {
		if text := c.databaseReport(name, metav1.ConditionTrue, databases.ReasonAvailable); text != "" {
			return text
		}
		return c.claimReport(name, metav1.ConditionTrue, databases.ReasonAvailable)
	})
	claim, database := c.getClaim(name), c.getDatabase(name)
	found := c.cloud.find(database.Status.ID)
	switch {
	case !metav1.IsControlledBy(database, claim):
		c.b.Fatalf("the Database %s is ready, and its claim does not control it", name)
	case found == nil:
		c.b.Fatalf("the Database %s is ready, and its status.id is %q, which the cloud does not know", name, database.Status.ID)
	case database.Status.Endpoint != found.Endpoint || claim.Status.Endpoint != found.Endpoint:
		c.b.Fatalf("%s has the endpoint %q, that of the Database is %q, and that of the claim %q",
			found.ID, found.Endpoint, database.Status.Endpoint, claim.Status.Endpoint)
	}
	c.b.Event("the claim %s is ready, with %s", name, found.ID)
	return found
}

// gone waits until a claim and its Database are gone.
func (c *cluster) gone(name string) {
	c.eventually(func() string {
		switch {
		case c.getDatabase(name) != nil:
			return "the claim was deleted, and the Database is still there"
		case c.getClaim(name) != nil:
			return "the claim was deleted, and is still there"
		}
		return ""
	})
	c.b.Event("the claim %s and its Database are gone", name)
}

// specIs checks the spec of a Database, and that of the database in the cloud.
func (c *cluster) specIs(name string, found *record, want databases.DatabaseSpec) {
	if got := c.getDatabase(name).Spec; got != want {
		c.b.Fatalf("the spec of the Database should be %+v, and is %+v", want, got)
	}
	if cloud := (databases.CloudSpec{Engine: want.Engine, SizeGB: want.SizeGB, Class: want.Class}); found.Spec != cloud {
		c.b.Fatalf("the database in the cloud should be %+v, and is %+v", cloud, found.Spec)
	}
}

// untouched checks that a Database which is not the operator's is as it was, but for its status.
func (c *cluster) untouched(before *databases.Database) {
	live := c.getDatabase(before.Name)
	switch {
	case live == nil || live.UID != before.UID || live.DeletionTimestamp != nil:
		c.b.Fatalf("the Database of that name, which the claim does not control, was deleted")
	case live.Spec != before.Spec || !apiequality.Semantic.DeepEqual(live.OwnerReferences, before.OwnerReferences) ||
		!slices.Equal(live.Finalizers, before.Finalizers) || len(live.Labels)+len(live.Annotations) > 0:
		c.b.Fatalf("the Database of that name, which the claim does not control, was changed")
	}
}
