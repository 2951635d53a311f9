package claim

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/03-flux/exercises/internal/databases"
)

// collect is one round of the garbage collector, which does not run here.
func (c *cluster) collect() {
	var claims databases.DatabaseClaimList
	var all databases.DatabaseList
	// In this order: a claim is there before the Database that it owns.
	c.must("listing Databases", c.client.List(c.b.Context(), &all, client.InNamespace(c.namespace)))
	c.must("listing claims", c.client.List(c.b.Context(), &claims, client.InNamespace(c.namespace)))
	there := map[types.UID]bool{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		there[claim.UID] = true
		if claim.DeletionTimestamp == nil {
			continue
		}
		switch {
		case controllerutil.ContainsFinalizer(claim, metav1.FinalizerOrphanDependents):
			c.orphan(claim, all.Items)
		case controllerutil.ContainsFinalizer(claim, metav1.FinalizerDeleteDependents):
			c.deleteDependents(claim, all.Items)
		}
	}
	for i := range all.Items {
		database := &all.Items[i]
		owned := func(owner metav1.OwnerReference) bool { return there[owner.UID] }
		if len(database.OwnerReferences) > 0 && !slices.ContainsFunc(database.OwnerReferences, owned) && database.DeletionTimestamp == nil {
			c.b.Event("the garbage collector deletes the Database %s", database.Name)
			c.write(c.client.Delete(c.b.Context(), database, client.Preconditions{UID: &database.UID}))
		}
	}
}

func ownedBy(database *databases.Database, claim *databases.DatabaseClaim) int {
	return slices.IndexFunc(database.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == claim.UID })
}

// orphan removes the owner references, and then the finalizer.
func (c *cluster) orphan(claim *databases.DatabaseClaim, all []databases.Database) {
	for i := range all {
		database := &all[i]
		if n := ownedBy(database, claim); n >= 0 {
			c.b.Event("the garbage collector removes the owner reference of the Database %s", database.Name)
			database.OwnerReferences = slices.Delete(database.OwnerReferences, n, n+1)
			if !c.write(c.client.Update(c.b.Context(), database)) {
				return
			}
		}
	}
	controllerutil.RemoveFinalizer(claim, metav1.FinalizerOrphanDependents)
	c.write(c.client.Update(c.b.Context(), claim))
}

// deleteDependents deletes what the claim owns. When nothing is left that blocks it, it removes the finalizer.
func (c *cluster) deleteDependents(claim *databases.DatabaseClaim, all []databases.Database) {
	blocked := false
	for i := range all {
		database := &all[i]
		n := ownedBy(database, claim)
		if n < 0 {
			continue
		}
		if block := database.OwnerReferences[n].BlockOwnerDeletion; block != nil && *block {
			blocked = true
		}
		if database.DeletionTimestamp == nil {
			c.b.Event("the garbage collector deletes the Database %s", database.Name)
			c.write(c.client.Delete(c.b.Context(), database, client.Preconditions{UID: &database.UID}))
		}
	}
	if !blocked {
		controllerutil.RemoveFinalizer(claim, metav1.FinalizerDeleteDependents)
		c.write(c.client.Update(c.b.Context(), claim))
	}
}

// write reports whether a write has taken effect. One that met a change, or a deletion, is repeated in the next round.
func (c *cluster) write(err error) bool {
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		c.b.Fatalf("the garbage collector: %v", err)
	}
	return err == nil
}
