package claim

import (
	"cmp"
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/03-flux/exercises/internal/databases"
)

// errBehind is what comes of a cache that does not have yet what the API server has. Trying again helps.
var errBehind = errors.New("the cache is behind")

// claimReconciler keeps the Database of a claim.
type claimReconciler struct {
	base
	defaults databases.Defaults
}

func (r *claimReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	claim := &databases.DatabaseClaim{}
	if err := r.Get(ctx, req.NamespacedName, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !claim.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, claim)
	}
	before := claim.DeepCopy()
	if controllerutil.AddFinalizer(claim, finalizer) {
		if err := r.Patch(ctx, claim, lock(before)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	database, err := r.ensure(ctx, claim)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, claim, database)
}

// ensure returns the Database of that name, as it should be if the claim controls it, or nil if it is lost.
func (r *claimReconciler) ensure(ctx context.Context, claim *databases.DatabaseClaim) (*databases.Database, error) {
	database := &databases.Database{}
	err := r.Get(ctx, client.ObjectKeyFromObject(claim), database)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, client.ObjectKeyFromObject(claim), database)
	}
	switch {
	case apierrors.IsNotFound(err) && claim.Status.DatabaseUID != "":
		return nil, nil
	case apierrors.IsNotFound(err):
		return r.create(ctx, claim)
	case err != nil:
		return nil, err
	case !metav1.IsControlledBy(database, claim) || database.Spec.DeletionPolicy == claim.Spec.DeletionPolicy:
		return database, nil
	}
	before := database.DeepCopy()
	database.Spec.DeletionPolicy = claim.Spec.DeletionPolicy
	return database, r.Patch(ctx, database, lock(before))
}

// resolve fills in the defaults.
func (r *claimReconciler) resolve(claim *databases.DatabaseClaim) databases.DatabaseSpec {
	return databases.DatabaseSpec{
		Engine: claim.Spec.Engine, SizeGB: cmp.Or(claim.Spec.SizeGB, r.defaults.SizeGB), Class: cmp.Or(claim.Spec.Class, r.defaults.Class),
		DeletionPolicy: claim.Spec.DeletionPolicy,
	}
}

// create resolves the defaults, for good.
func (r *claimReconciler) create(ctx context.Context, claim *databases.DatabaseClaim) (*databases.Database, error) {
	current := &databases.DatabaseClaim{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), current); err != nil {
		return nil, err
	}
	if current.UID != claim.UID || current.DeletionTimestamp != nil || current.Status.DatabaseUID != "" {
		return nil, errBehind
	}
	database := &databases.Database{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: claim.Namespace, Finalizers: []string{finalizer}},
		Spec:       r.resolve(claim),
	}
	if err := controllerutil.SetControllerReference(claim, database, r.Scheme()); err != nil {
		return nil, err
	}
	return database, r.Create(ctx, database)
}

// report writes what the Database says, if that is about its current generation.
func (r *claimReconciler) report(ctx context.Context, claim *databases.DatabaseClaim, database *databases.Database) error {
	before := claim.DeepCopy()
	set := func(status metav1.ConditionStatus, reason, message string) {
		setReady(claim, &claim.Status.Conditions, status, reason, message)
	}
	switch {
	case database == nil || metav1.IsControlledBy(database, claim) && claim.Status.DatabaseUID != "" && claim.Status.DatabaseUID != string(database.UID):
		set(metav1.ConditionFalse, databases.ReasonLost, "the Database of this claim was deleted")
	case !metav1.IsControlledBy(database, claim):
		set(metav1.ConditionFalse, databases.ReasonNameConflict, "the Database of that name is not controlled by this claim")
	default:
		claim.Status.DatabaseUID, claim.Status.Endpoint = string(database.UID), database.Status.Endpoint
		ready := apimeta.FindStatusCondition(database.Status.Conditions, databases.ConditionReady)
		if ready == nil || ready.ObservedGeneration != database.Generation {
			set(metav1.ConditionUnknown, databases.ReasonPending, "the Database has not yet reported about its current generation")
		} else {
			set(ready.Status, ready.Reason, ready.Message)
		}
	}
	return r.writeStatus(ctx, before, claim)
}

// finalize deletes the Database and waits for its end, which triggers another reconciliation. With orphan it stays.
func (r *claimReconciler) finalize(ctx context.Context, claim *databases.DatabaseClaim) error {
	if controllerutil.ContainsFinalizer(claim, metav1.FinalizerOrphanDependents) {
		return r.release(ctx, claim)
	}
	database := &databases.Database{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), database)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil || !metav1.IsControlledBy(database, claim):
		return r.release(ctx, claim)
	case !database.DeletionTimestamp.IsZero():
		return nil
	}
	return client.IgnoreNotFound(r.Delete(ctx, database, client.Preconditions{UID: &database.UID}))
}
