package controller

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// Children are created, not applied: an apply would add to a foreign object that has come into being since the cache
// said "absent", where no field of it is in conflict with ours. A create never touches what is there.

// create creates a child. Where there is one of its name after all it is either another's, or ours and the cache is
// behind.
func (r *GoopReconciler) create(ctx context.Context, goop *v1alpha1.Goop, child client.Object, kind string) error {
	live := child.DeepCopyObject().(client.Object)
	err := r.Get(ctx, client.ObjectKeyFromObject(child), live)
	switch {
	case err == nil && !metav1.IsControlledBy(live, goop):
		return nameConflict(kind, child.GetName())
	case err == nil && live.GetDeletionTimestamp().IsZero():
		return r.adopt(ctx, live, child.GetLabels(), kind)
	case err == nil:
		return &refusedError{reason: v1alpha1.ReasonNameConflict, message: fmt.Sprintf("%s %s is about to go", kind, child.GetName())}
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading %s %s: %w", kind, child.GetName(), err)
	}
	if err := r.Create(ctx, child, client.FieldOwner(fieldOwner)); err != nil {
		return classify(fmt.Sprintf("creating %s %s", kind, child.GetName()), err)
	}
	return nil
}

// createDaemonSet creates the DaemonSet of a round, or of the cleanup.
func (r *GoopReconciler) createDaemonSet(ctx context.Context, goop *v1alpha1.Goop, round plan.Round, daemonSet *appsv1.DaemonSet) error {
	if err := r.checkHostAccess(goop, round); err != nil {
		return err
	}
	return r.create(ctx, goop, daemonSet, "DaemonSet")
}

// checkHostAccess returns an error if pods on these nodes would have an access to them that this operator does not
// grant. Whatever makes pods calls it: neither an edited record nor a restart without the flag gives more.
func (r *GoopReconciler) checkHostAccess(goop *v1alpha1.Goop, round plan.Round) error {
	if r.AllowHostAccess || !asksForHost(goop) || (!round.Everywhere && len(round.Nodes) == 0) {
		return nil
	}
	return &refusedError{reason: v1alpha1.ReasonHostAccessRefused, message: hostAccessMessage}
}

// adopt gives a child of ours the labels by which it is found: somebody has taken them.
func (r *GoopReconciler) adopt(ctx context.Context, live client.Object, labels map[string]string, kind string) error {
	return r.patch(ctx, live, map[string]any{"metadata": map[string]any{"uid": live.GetUID(), "labels": labels}}, kind)
}

// place gives the DaemonSet of a round its nodes. It is the only field that is changed, but for the update strategy, if
// somebody has: with another, finished work would run again for it.
func (r *GoopReconciler) place(ctx context.Context, goop *v1alpha1.Goop, live *appsv1.DaemonSet, round plan.Round) error {
	if err := r.checkHostAccess(goop, round); err != nil {
		return err
	}
	return r.patch(ctx, live, map[string]any{
		"metadata": map[string]any{"uid": live.UID},
		"spec": map[string]any{
			"updateStrategy": map[string]any{"type": appsv1.OnDeleteDaemonSetStrategyType, "rollingUpdate": nil},
			"template": map[string]any{"spec": map[string]any{"affinity": map[string]any{
				"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": nodeSelectorOf(round)},
			}}},
		},
	}, "DaemonSet")
}

// patch changes a child. The uid in it keeps it from falling on another object that has taken the name since.
func (r *GoopReconciler) patch(ctx context.Context, live client.Object, change any, kind string) error {
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("writing the change of %s %s: %w", kind, live.GetName(), err)
	}
	target := live.DeepCopyObject().(client.Object)
	if err := r.Patch(ctx, target, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return classify(fmt.Sprintf("changing %s %s", kind, live.GetName()), err)
	}
	return nil
}

// remove deletes exactly this child. The garbage collector ends its pods.
func (r *GoopReconciler) remove(ctx context.Context, child client.Object, kind string) error {
	err := r.Delete(ctx, child, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: new(child.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, child.GetName(), err)
	}
	return nil
}

// hostAccessMessage says why a Goop that asks for host access has no pods.
const hostAccessMessage = "spec.host asks for access to nodes, and the operator was started without --allow-host-access"

// refusedError says that the API server will not have a child as it is desired, and that trying again changes
// nothing until the world does.
type refusedError struct {
	reason, message string
	// forGood: the namespace is about to go, so that nothing is made in it any more.
	forGood bool
}

func (e *refusedError) Error() string { return e.message }

func nameConflict(kind, name string) *refusedError {
	return &refusedError{
		reason:  v1alpha1.ReasonNameConflict,
		message: fmt.Sprintf("%s %s exists and does not belong to this Goop: it is left as it is", kind, name),
	}
}

// classify tells refusals from errors that may be gone with the next try.
func classify(doing string, err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// The garbage collector is at work, and the Goop itself goes next.
		return &refusedError{reason: v1alpha1.ReasonApplyFailed, message: "the namespace is about to go", forGood: true}
	}
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonInvalid, metav1.StatusReasonForbidden, metav1.StatusReasonBadRequest,
		metav1.StatusReasonInternalError, metav1.StatusReasonRequestEntityTooLarge:
		return &refusedError{reason: v1alpha1.ReasonApplyFailed, message: doing + ": " + err.Error()}
	}
	return fmt.Errorf("%s: %w", doing, err)
}
