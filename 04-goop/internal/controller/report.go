package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// reportTime is how long before its deadline a reconciliation stops acting, so that it can report why.
const reportTime = 15 * time.Second

// untilReport returns a context for all that a reconciliation does before it reports. An admission webhook may block a
// request for 30 s: without this limit, two such requests would use up the whole reconciliation, and no status would say why.
func untilReport(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-reportTime))
}

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
	after := observed.goop.DeepCopy()
	after.Status = status
	// After a failure another status may follow: it is compared with what is stored, and that is still the old one.
	if err := writeStatus(ctx, r.Client, observed.goop, after, fieldOwner); err != nil {
		return err
	}
	announce(ctx, r.recorder, after, transitions(observed.goop.Status, status))
	return nil
}

// transition is a change of the status that is worth an Event: an Event that repeats tells nothing new.
type transition struct {
	// eventType is Normal or Warning. If it is empty, the transition is logged only.
	eventType string
	// Condition is what became of the condition; its reason is that of the Event.
	metav1.Condition
}

// announce reports transitions, after the status that has them was written: to operators in the log, and to users in
// Events. The delivery of Events is asynchronous, and one may be lost.
func announce(ctx context.Context, recorder events.EventRecorder, object client.Object, transitions []transition) {
	for _, one := range transitions {
		ctrl.LoggerFrom(ctx).Info("Condition changed", "type", one.Type, "status", one.Status, "reason", one.Reason, "message", one.Message)
		if one.eventType != "" {
			recorder.Eventf(object, nil, one.eventType, one.Reason, "Reconcile", "%s", shorten(one.Message, maxEventNote))
		}
	}
}

// announceUnreported says in an Event what no status can: the object is as large as the API server stores, and has no room
// for a status.
func announceUnreported(recorder events.EventRecorder, object client.Object, err error) {
	if isTooLarge(err) {
		recorder.Eventf(object, nil, corev1.EventTypeWarning, v1alpha1.ReasonApplyFailed, "Reconcile", "%s",
			"the object is so large that its status cannot be stored: delete it, and create a smaller one")
	}
}
