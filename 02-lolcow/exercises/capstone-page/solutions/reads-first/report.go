package page

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
)

// takenPause is how long a hostname that another record has is not asked for.
const takenPause = 2 * time.Second

// outcome is the condition Ready, from what was observed.
func outcome(deployment *appsv1.Deployment, conflict string, recordErr error) metav1.Condition {
	ready := metav1.Condition{Type: pages.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case conflict != "":
		ready.Reason, ready.Message = pages.ReasonNameConflict, conflict
	case errors.Is(recordErr, pages.ErrTaken):
		ready.Reason, ready.Message = pages.ReasonHostnameTaken, recordErr.Error()
	case recordErr != nil:
		ready.Reason, ready.Message = pages.ReasonDNSError, recordErr.Error()
	case !rolledOut(deployment):
		ready.Reason, ready.Message = pages.ReasonRollingOut, "the Pods do not all serve this Markdown yet"
	default:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, pages.ReasonServing, "all Pods serve this Markdown"
	}
	return ready
}

// rolledOut decides as kubectl rollout status does.
func rolledOut(d *appsv1.Deployment) bool {
	return d.Spec.Replicas != nil && d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= *d.Spec.Replicas &&
		d.Status.Replicas <= d.Status.UpdatedReplicas && d.Status.AvailableReplicas >= d.Status.UpdatedReplicas
}

// report writes the condition where it differs, and then announces a new reason. One that the status has was announced before, unless
// the process has crashed in between.
func (r *reconciler) report(ctx context.Context, page *pages.Page, ready metav1.Condition) error {
	value := 0.0
	if ready.Status == metav1.ConditionTrue {
		value = 1
	}
	r.ready.WithLabelValues(page.Namespace, page.Name).Set(value)

	before := page.DeepCopy()
	ready.ObservedGeneration = page.Generation
	known := apimeta.FindStatusCondition(before.Status.Conditions, pages.ConditionReady)
	if !apimeta.SetStatusCondition(&page.Status.Conditions, ready) {
		return nil
	}
	if err := r.Status().Patch(ctx, page, lock(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	if known != nil && known.Reason == ready.Reason {
		return nil
	}
	kind := corev1.EventTypeWarning
	if ready.Reason == pages.ReasonServing || ready.Reason == pages.ReasonRollingOut {
		kind = corev1.EventTypeNormal
	}
	r.recorder.Eventf(page, nil, kind, ready.Reason, "Reconcile", "%s", ready.Message)
	return nil
}
