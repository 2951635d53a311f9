package foo

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// Errors of a reconciliation are of three classes:
//
//  1. refused (*Refusal): the API server rejects the Deployment, or an object that is not the Foo's has its name. The
//     same request fails until the spec or the cluster changes.
//  2. stale (ErrStale): what was read is older than what the API server has. The next reconciliation reads again.
//  3. transient: everything else, for instance a time-out, no connection, or an admission webhook that is down.
//
// Errors of the first and of the third class are reported in the status. A stale one is not: the status would be
// computed from what is known to be out of date.

// ErrStale is in every error of the second class.
var ErrStale = errors.New("the cache is older than what the API server has")

// Refusal is why the Deployment is not as the spec describes it, as the status reports it.
type Refusal struct {
	// Reason is a reason of the condition Ready.
	Reason string
	// Message is for the user: the API server's own text where it has one.
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// NameConflict is the refusal of the controller itself: a Deployment of the name is there and is not the
// Foo's. It is not tried again: the Deployment's own event wakes the Foo.
func NameConflict(deploymentName string) *Refusal {
	return &Refusal{
		Reason:  v1alpha1.ReasonNameConflict,
		Message: fmt.Sprintf("Deployment %s exists and does not belong to this Foo: it is left as it is", deploymentName),
	}
}

// Transient is how the status reports an error of the third class.
func Transient(err error) *Refusal {
	return &Refusal{Reason: v1alpha1.ReasonAPIError, Message: normalizeMessage(err.Error())}
}

// Classify sorts the API server's response to a write: a *Refusal where it rejects the object, ErrStale where the object
// has changed since it was read, and any other error, wrapped, where the next try may succeed (a time-out, 5xx, 429, no
// connection). doing says what was tried, as in "applying Deployment web". A nil error stays nil.
func Classify(doing string, err error) error {
	if err == nil {
		return nil
	}
	if NamespaceIsTerminating(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonInvalid:
		// Another uid than the one that was applied: since the Deployment was read, it has been deleted, and another
		// object has got its name.
		if concerns(err, "metadata.uid") {
			return fmt.Errorf("%s: %w: %w", doing, ErrStale, err)
		}
		return &Refusal{Reason: v1alpha1.ReasonApplyFailed, Message: err.Error()}
	case metav1.StatusReasonConflict:
		return fmt.Errorf("%s: %w: %w", doing, ErrStale, err)
	case metav1.StatusReasonForbidden, metav1.StatusReasonBadRequest, metav1.StatusReasonRequestEntityTooLarge:
		return &Refusal{Reason: v1alpha1.ReasonApplyFailed, Message: err.Error()}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// AsRefusal returns the refusal in err, or nil if err may pass with the next try.
func AsRefusal(err error) *Refusal {
	refusal, _ := errors.AsType[*Refusal](err)
	return refusal
}

// IsOwnedByOthers tells whether an apply that was not forced met a Deployment of the name that the cache did not
// know of yet. Either another writer owns fields of it, or it is another Foo's: that has the same field
// owner, so there is no conflict of fields, but its selector is another and immutable.
func IsOwnedByOthers(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonConflict:
		return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
	case metav1.StatusReasonInvalid:
		return concerns(err, "spec.selector")
	}
	return false
}

// IsNameConflict tells whether a refusal is a NameConflict.
func IsNameConflict(refusal *Refusal) bool {
	return refusal != nil && refusal.Reason == v1alpha1.ReasonNameConflict
}

// NamespaceIsTerminating tells whether the API server takes nothing new because the namespace is on its
// way out: the Foo goes next, and there is nothing to report. Classify leaves such an error as it is.
func NamespaceIsTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// concerns tells whether the API server found fault with a field.
func concerns(err error, field string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == field
	})
}

// StartError sorts the answer to a first list of Foos, with which an operator begins: an error where it will not
// come right by itself (no such cluster, an unknown user, a missing right, no such kind), to end the process
// with; nil where there is none, or an API server has trouble of its own that will pass.
func StartError(err error) error {
	var answer apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return fmt.Errorf("listing Foos: %w: the cluster has no CRD for them: `make install` installs it", err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err), !errors.As(err, &answer):
		return fmt.Errorf("listing Foos: %w", err)
	}
	return nil
}
