package claim

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/03-flux/exercises/internal/databases"
)

// poll is how often the cloud is asked about a database that it is creating.
const poll = 500 * time.Millisecond

// databaseReconciler keeps the database of a Database.
type databaseReconciler struct {
	base
	cloud databases.Cloud
}

func (r *databaseReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	database := &databases.Database{}
	if err := r.Get(ctx, req.NamespacedName, database); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// What the cache may lack decides here. The claim is read before the Database: the record with which a replica requests a database
	// is then older than the deletion of the Database, and finalize finds it.
	claim, err := r.claimOf(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !database.DeletionTimestamp.IsZero() || database.Status.ID == "" {
		if err := r.live.Get(ctx, req.NamespacedName, database); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	if claim != nil && !metav1.IsControlledBy(database, claim) {
		claim = nil
	}
	if !database.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, database, claim)
	}
	if database.Status.ID == "" {
		switch {
		case claim == nil:
			before := database.DeepCopy()
			ready(database, metav1.ConditionFalse, databases.ReasonNotOwned, "no claim of that name controls this Database")
			return ctrl.Result{}, r.writeStatus(ctx, before, database)
		case claim.DeletionTimestamp != nil || claim.Status.DatabaseUID != string(database.UID):
			return ctrl.Result{}, nil // the claim is about to delete it, or has not recorded it
		}
	}
	return r.observe(ctx, database)
}

func ready(database *databases.Database, status metav1.ConditionStatus, reason, message string) {
	setReady(database, &database.Status.Conditions, status, reason, message)
}

// observe writes what the cloud says.
func (r *databaseReconciler) observe(ctx context.Context, database *databases.Database) (ctrl.Result, error) {
	before, result := database.DeepCopy(), ctrl.Result{}
	found, err := r.find(ctx, database)
	if err == nil {
		database.Status.ID, database.Status.Endpoint = found.ID, found.Endpoint
	}
	switch {
	case errors.Is(err, databases.ErrNotFound):
		ready(database, metav1.ConditionFalse, databases.ReasonLost, "the database is not in the cloud any more")
		err = nil
	case err != nil:
		ready(database, metav1.ConditionFalse, databases.ReasonCloudError, err.Error())
	case found.Available:
		ready(database, metav1.ConditionTrue, databases.ReasonAvailable, "")
	default:
		ready(database, metav1.ConditionFalse, databases.ReasonCreating, "the cloud is creating the database")
		result.RequeueAfter = poll
	}
	if err := errors.Join(err, r.writeStatus(ctx, before, database)); err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

// find returns the database in the cloud. It is created if its ID was not recorded, and the cloud has none with its token: the cloud
// forgets tokens, but its databases keep theirs.
func (r *databaseReconciler) find(ctx context.Context, database *databases.Database) (databases.CloudDatabase, error) {
	if database.Status.ID != "" {
		return r.cloud.Get(ctx, database.Status.ID)
	}
	token := string(database.UID)
	all, err := r.cloud.List(ctx)
	if err != nil {
		return databases.CloudDatabase{}, err
	}
	for _, one := range all {
		if one.Token == token {
			return one, nil
		}
	}
	spec := databases.CloudSpec{Engine: database.Spec.Engine, SizeGB: database.Spec.SizeGB, Class: database.Spec.Class}
	return r.cloud.Create(ctx, token, spec)
}

// claimOf returns the claim of that name, or nil.
func (r *databaseReconciler) claimOf(ctx context.Context, key client.ObjectKey) (*databases.DatabaseClaim, error) {
	claim := &databases.DatabaseClaim{}
	if err := r.live.Get(ctx, key, claim); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return claim, nil
}

// finalize deletes the database, by the policy that the claim has if it is still there.
func (r *databaseReconciler) finalize(ctx context.Context, database *databases.Database, claim *databases.DatabaseClaim) error {
	if !controllerutil.ContainsFinalizer(database, finalizer) {
		return nil
	}
	policy, requested := database.Spec.DeletionPolicy, true
	if claim != nil {
		// Without the record no process has requested a database.
		policy, requested = claim.Spec.DeletionPolicy, database.Status.ID != "" || claim.Status.DatabaseUID == string(database.UID)
	}
	if policy == databases.Delete && requested {
		if err := r.delete(ctx, database); err != nil {
			return err
		}
	}
	return r.release(ctx, database)
}

// delete deletes the database in the cloud. One whose ID is not recorded may have been created just before a crash, or its creation
// may still be in flight in another process. So it is found, or created: the token is used then, and the other creation comes to the
// database that is deleted here.
func (r *databaseReconciler) delete(ctx context.Context, database *databases.Database) error {
	id := database.Status.ID
	if id == "" {
		found, err := r.find(ctx, database)
		if err != nil {
			return err
		}
		id = found.ID
	}
	if err := r.cloud.Delete(ctx, id); !errors.Is(err, databases.ErrNotFound) {
		return err
	}
	return nil
}
