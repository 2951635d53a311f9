package latch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// phase says what is right for the workers.
type phase int

const (
	all  phase = iota // each one exists
	keep              // those that exist stay
	none
)

// Reconcile creates the workers of a Goop, notices their end, and deletes them after the TTL.
func Reconcile(ctx context.Context, c client.Client, now time.Time, key client.ObjectKey) (reconcile.Result, error) {
	goop := &v1alpha1.Goop{}
	if err := c.Get(ctx, key, goop); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	workers, done := map[string]*corev1.ConfigMap{}, 0
	for i := range list.Items {
		if worker := &list.Items[i]; metav1.IsControlledBy(worker, goop) {
			workers[worker.Name] = worker
			if worker.Data["done"] == "yes" {
				done++
			}
		}
	}
	what, after := decide(goop, now)
	for i := range *goop.Spec.JobCount {
		name := fmt.Sprintf("%s-%d", goop.Name, i)
		switch worker := workers[name]; {
		case what == all && worker == nil:
			return reconcile.Result{}, create(ctx, c, goop, name)
		case what == none && worker != nil:
			return reconcile.Result{}, client.IgnoreNotFound(c.Delete(ctx, worker, client.Preconditions{UID: &worker.UID}))
		}
	}
	if what == all && done == int(*goop.Spec.JobCount) {
		return reconcile.Result{}, end(ctx, c, goop, now)
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// decide is pure.
func decide(goop *v1alpha1.Goop, now time.Time) (phase, time.Duration) {
	if !goop.Ended() {
		return all, 0
	}
	if goop.Spec.TTLSecondsAfterFinished == nil {
		return keep, 0
	}
	ttl := time.Duration(*goop.Spec.TTLSecondsAfterFinished) * time.Second
	if left := goop.Status.CompletionTime.Add(ttl).Sub(now); left > 0 {
		return keep, left
	}
	return none, 0
}

func end(ctx context.Context, c client.Client, goop *v1alpha1.Goop, now time.Time) error {
	before := goop.DeepCopy()
	goop.Status.CompletionTime = &metav1.Time{Time: now}
	goop.Status.Conditions = append(goop.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Finished", LastTransitionTime: metav1.NewTime(now),
	})
	return c.Status().Patch(ctx, goop, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func create(ctx context.Context, c client.Client, goop *v1alpha1.Goop, name string) error {
	worker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: goop.Namespace, Name: name}}
	if err := controllerutil.SetControllerReference(goop, worker, c.Scheme()); err != nil {
		return err
	}
	return c.Create(ctx, worker)
}
