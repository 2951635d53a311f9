package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
