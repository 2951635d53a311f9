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

// report writes the status if it changed. Then it reports transitions, to operators in the log and to users in Events.
func (r *FooReconciler) report(ctx context.Context, f *v1alpha1.Foo, observed foo.Observation) error {
	status := foo.Status(f, observed, metav1.NewTime(r.clock.Now()))
	if apiequality.Semantic.DeepEqual(status, f.Status) {
		return nil
	}
	// The optimistic lock is there because a merge patch replaces whole lists: another writer's condition would be lost.
	before := f.DeepCopy()
	f.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, f, patch, client.FieldOwner(foo.FieldOwner)); err != nil {
		return fmt.Errorf("writing the status of Foo %s: %w", f.Name, err)
	}
	for _, one := range foo.Transitions(before.Status, status) {
		ctrl.LoggerFrom(ctx).Info("Condition changed", "type", one.Type, "status", one.Status, "reason", one.Reason, "message", one.Message)
		if one.EventType != "" {
			r.recorder.Eventf(f, nil, one.EventType, one.Reason, foo.Action, "%s", one.Note())
		}
	}
	return nil
}
