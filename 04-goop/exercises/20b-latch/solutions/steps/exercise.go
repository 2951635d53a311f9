package latch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Reconcile creates the workers of a Goop, notices their end, and deletes them after the TTL.
func Reconcile(ctx context.Context, c client.Client, now time.Time, key client.ObjectKey) (reconcile.Result, error) {
	var goop v1alpha1.Goop
	if err := c.Get(ctx, key, &goop); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !goop.Ended() {
		done, err := run(ctx, c, &goop)
		if err != nil || !done {
			return reconcile.Result{}, err
		}
		// Before anything is deleted.
		if err := end(ctx, c, &goop, now); err != nil {
			return reconcile.Result{}, err
		}
	}
	if goop.Spec.TTLSecondsAfterFinished == nil {
		return reconcile.Result{}, nil
	}
	expires := goop.Status.CompletionTime.Add(time.Duration(*goop.Spec.TTLSecondsAfterFinished) * time.Second)
	if left := expires.Sub(now); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, removeAll(ctx, c, &goop)
}

// run creates the workers that are not there, and says whether all are done.
func run(ctx context.Context, c client.Client, goop *v1alpha1.Goop) (bool, error) {
	done := true
	for i := range *goop.Spec.JobCount {
		var worker corev1.ConfigMap
		err := c.Get(ctx, keyOf(goop, i), &worker)
		if apierrors.IsNotFound(err) {
			err = create(ctx, c, goop, i)
		}
		if err != nil {
			return false, err
		}
		if worker.UID != "" && !metav1.IsControlledBy(&worker, goop) {
			return false, fmt.Errorf("the ConfigMap %s is not that of the Goop", worker.Name)
		}
		done = done && worker.Data["done"] == "yes"
	}
	return done, nil
}

// end writes that all workers are done.
func end(ctx context.Context, c client.Client, goop *v1alpha1.Goop, now time.Time) error {
	goop.Status.CompletionTime = new(metav1.NewTime(now))
	apimeta.SetStatusCondition(&goop.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Finished", ObservedGeneration: goop.Generation,
	})
	return c.Status().Update(ctx, goop)
}

// removeAll deletes the workers that are still there.
func removeAll(ctx context.Context, c client.Client, goop *v1alpha1.Goop) error {
	for i := range *goop.Spec.JobCount {
		var worker corev1.ConfigMap
		err := c.Get(ctx, keyOf(goop, i), &worker)
		if err == nil && metav1.IsControlledBy(&worker, goop) {
			err = c.Delete(ctx, &worker, client.Preconditions{UID: &worker.UID})
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func keyOf(goop *v1alpha1.Goop, i int32) client.ObjectKey {
	return client.ObjectKey{Namespace: goop.Namespace, Name: fmt.Sprintf("%s-%d", goop.Name, i)}
}

// create creates a worker if it is not there.
func create(ctx context.Context, c client.Client, goop *v1alpha1.Goop, i int32) error {
	worker := &corev1.ConfigMap{}
	worker.Namespace, worker.Name = goop.Namespace, keyOf(goop, i).Name
	if err := controllerutil.SetControllerReference(goop, worker, c.Scheme()); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(c.Create(ctx, worker))
}
