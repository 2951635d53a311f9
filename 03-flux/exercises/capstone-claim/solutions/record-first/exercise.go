package claim

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"example.com/workbook/03-flux/exercises/internal/databases"
)

// finalizer is that of both kinds.
const finalizer = "claim.example.com/database"

// Setup adds the controllers of both kinds to a manager. Each is triggered by the objects of that name of both kinds.
func Setup(mgr ctrl.Manager, cloud databases.Cloud, defaults databases.Defaults) error {
	b := base{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	err := ctrl.NewControllerManagedBy(mgr).For(&databases.DatabaseClaim{}).
		Watches(&databases.Database{}, &handler.EnqueueRequestForObject{}).
		Complete(&claimReconciler{base: b, defaults: defaults})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&databases.Database{}).
		Watches(&databases.DatabaseClaim{}, &handler.EnqueueRequestForObject{}).
		Complete(&databaseReconciler{base: b, cloud: cloud})
}

// base is what both reconcilers have.
type base struct {
	client.Client
	// live reads from the API server.
	live client.Reader
}

// lock has a patch rejected if the object has changed since it was read.
func lock(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// release removes the finalizer.
func (b base) release(ctx context.Context, object client.Object) error {
	before := object.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(b.Patch(ctx, object, lock(before)))
}

// writeStatus writes what differs from before.
func (b base) writeStatus(ctx context.Context, before, after client.Object) error {
	if apiequality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return client.IgnoreNotFound(b.Status().Patch(ctx, after, lock(before)))
}

// setReady sets the condition, about the generation of the object.
func setReady(object client.Object, conditions *[]metav1.Condition, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(conditions, metav1.Condition{
		Type: databases.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: object.GetGeneration(),
	})
}
