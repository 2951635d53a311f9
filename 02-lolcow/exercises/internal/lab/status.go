package lab

import (
	"cmp"
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// The names of the reconcilers that tests of 23a are run with.
const (
	// Updates and Patches are right.
	Updates = "updates"
	Patches = "patches"
	// WholeObject writes the status with an update of the whole object, in which the API server ignores it.
	WholeObject = "whole-object"
	// NoReason writes a condition without a reason, which the API server rejects.
	NoReason = "no-reason"
	// NoGeneration does not write observedGeneration, and OldGeneration writes it once.
	NoGeneration  = "no-generation"
	OldGeneration = "old-generation"
	// NoGreeting does not write the greeting, and NotReady says that Ready is False.
	NoGreeting = "no-greeting"
	NotReady   = "not-ready"
	// Once writes the status of a Lolcow that has none, and never again.
	Once = "once"
)

// statuses are the ways in which they write the status.
var statuses = map[string]func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error{
	Updates: func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
		report(lolcow, v1alpha1.ReasonServing, lolcow.Generation)
		return c.Status().Update(ctx, lolcow)
	},
	Patches: func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
		before := lolcow.DeepCopy()
		report(lolcow, "Greeting", lolcow.Generation)
		apimeta.FindStatusCondition(lolcow.Status.Conditions, v1alpha1.ConditionReady).Message =
			fmt.Sprintf("%d characters are served", len(lolcow.Spec.Greeting))
		if apiequality.Semantic.DeepEqual(before.Status, lolcow.Status) {
			return nil
		}
		return c.Status().Patch(ctx, lolcow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	},
	WholeObject: func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
		report(lolcow, v1alpha1.ReasonServing, lolcow.Generation)
		return c.Update(ctx, lolcow)
	},
	NoReason: func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
		report(lolcow, "", lolcow.Generation)
		return c.Status().Update(ctx, lolcow)
	},
	NoGeneration: func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
		report(lolcow, v1alpha1.ReasonServing, 0)
		return c.Status().Update(ctx, lolcow)
	},
	OldGeneration: func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
		before := lolcow.Status.ObservedGeneration
		report(lolcow, v1alpha1.ReasonServing, lolcow.Generation)
		lolcow.Status.ObservedGeneration = cmp.Or(before, lolcow.Generation)
		return c.Status().Update(ctx, lolcow)
	},
	NoGreeting: func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
		report(lolcow, v1alpha1.ReasonServing, lolcow.Generation)
		lolcow.Status.Greeting = ""
		return c.Status().Update(ctx, lolcow)
	},
	NotReady: func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
		report(lolcow, v1alpha1.ReasonServing, lolcow.Generation)
		apimeta.FindStatusCondition(lolcow.Status.Conditions, v1alpha1.ConditionReady).Status = metav1.ConditionFalse
		return c.Status().Update(ctx, lolcow)
	},
	Once: func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error {
		if len(lolcow.Status.Conditions) > 0 {
			return nil
		}
		report(lolcow, v1alpha1.ReasonServing, lolcow.Generation)
		return c.Status().Update(ctx, lolcow)
	},
}

func report(lolcow *v1alpha1.Lolcow, reason string, generation int64) {
	lolcow.Status.Greeting = lolcow.Spec.Greeting
	lolcow.Status.ObservedGeneration = generation
	apimeta.SetStatusCondition(&lolcow.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: generation,
	})
}

type statusWriter struct {
	client client.Client
	write  func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error
}

// Reconcile writes the status of a Lolcow.
func (r *statusWriter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, r.write(ctx, r.client, &lolcow)
}
