package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// writeStatus writes the status of after, which is before with another status. The optimistic lock is there because a
// merge patch replaces whole lists: another writer's condition would be lost.
func writeStatus(ctx context.Context, c client.StatusClient, before, after client.Object, fieldOwner string) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, after, patch, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("writing the status of %s: %w", before.GetName(), err)
	}
	return nil
}

// reportStatus writes a status of the Goop, and then announces what is new in it.
func (r *GoopReconciler) reportStatus(ctx context.Context, observed *observation, status v1alpha1.GoopStatus) error {
	before := observed.goop.DeepCopy()
	observed.goop.Status = status
	if err := writeStatus(ctx, r.Client, before, observed.goop, fieldOwner); err != nil {
		return err
	}
	announce(ctx, r.recorder, observed.goop, transitions(before.Status, status))
	return nil
}

// transition is a change of the status that is worth an Event: an Event that repeats tells nothing new.
type transition struct {
	// eventType is Normal or Warning. If it is empty, the transition is logged only.
	eventType, reason, message string
}

// announce reports transitions, after the status that has them was written: to operators in the log, and to users in
// Events. The delivery of Events is asynchronous, and one may be lost.
func announce(ctx context.Context, recorder events.EventRecorder, object client.Object, transitions []transition) {
	for _, one := range transitions {
		ctrl.LoggerFrom(ctx).Info("Condition changed", "reason", one.reason, "message", one.message)
		if one.eventType != "" {
			recorder.Eventf(object, nil, one.eventType, one.reason, "Reconcile", "%s", shorten(one.message, maxEventNote))
		}
	}
}
