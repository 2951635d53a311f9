package managed

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// report writes the status if it changed, and then what the change is worth to users in Events.
func (r *FooReconciler) report(ctx context.Context, f *v1alpha1.Foo, seen foo.Facts) error {
	status := foo.Status(f, seen, metav1.NewTime(r.clock.Now()))
	if apiequality.Semantic.DeepEqual(status, f.Status) {
		return nil
	}
	// The lock is there because a merge patch replaces the whole list of conditions.
	before := f.DeepCopy()
	f.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, f, patch, client.FieldOwner(foo.FieldOwner)); err != nil {
		return fmt.Errorf("writing status of Foo %s: %w", f.Name, err)
	}
	for _, event := range foo.Events(before.Status, status) {
		ctrl.LoggerFrom(ctx).Info("Telling of a transition", "reason", event.Reason, "note", event.Note)
		r.recorder.Eventf(f, nil, event.Type, event.Reason, foo.Action, "%s", event.Note)
	}
	return nil
}
