package foo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// Errors of a reconciliation are of three classes:
//
//  1. rejected (*Failure): the API server rejects the Deployment, or an object that the Foo does not own has its name. The
//     same request fails until the spec or the cluster changes.
//  2. stale (ErrStale): what was read is older than what the API server has. The next reconciliation reads again.
//  3. transient: everything else, for instance a time-out, no connection, an admission webhook that is down, or a permission
//     that the operator lacks.
//
// Rejected and transient errors are reported in the status. A stale one is not: the status would be computed from what is
// known to be out of date.

// ErrStale is in every error of the second class.
var ErrStale = errors.New("the cache is older than what the API server has")

// ErrNamespaceTerminating says that nothing was created because the namespace is being deleted. It is of no class, and not
// reported: what it would be reported in is deleted too.
var ErrNamespaceTerminating = errors.New("the namespace is being deleted")

// Failure is why the Deployment is not as the spec describes it, as the status reports it. As an error it is of the first
// class.
type Failure struct {
	// Reason is a reason of the condition Ready.
	Reason string
	// Message is for the user: the API server's own text where it has one.
	Message string
}

func (f *Failure) Error() string { return f.Message }

// NameConflict says that a Deployment of the name exists and is not owned by the Foo. If the cache has it, no try is
// needed: its own event triggers a reconciliation of the Foo.
func NameConflict(deploymentName string) *Failure {
	return &Failure{
		Reason:  v1alpha1.ReasonNameConflict,
		Message: fmt.Sprintf("Deployment %s already exists and has a different owner, or none: it is left unchanged", deploymentName),
	}
}

// ChangedByAdmission says that what the API server has stored is not what was applied.
func ChangedByAdmission(deploymentName string) *Failure {
	return &Failure{
		Reason:  v1alpha1.ReasonApplyFailed,
		Message: "an admission policy or webhook changes Deployment " + deploymentName,
	}
}

// Transient is how the status reports an error of the third class.
func Transient(err error) *Failure {
	return &Failure{Reason: v1alpha1.ReasonAPIError, Message: normalizeMessage(err.Error())}
}

// Classify sorts the API server's response to a write into the three classes. action says what was tried, as in "applying
// Deployment web". A nil error stays nil.
func Classify(action string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%s: %w: %w", action, ErrNamespaceTerminating, err)
	case isRejection(err):
		return &Failure{Reason: v1alpha1.ReasonApplyFailed, Message: err.Error()}
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", action, ErrStale, err)
	}
	return fmt.Errorf("%s: %w", action, err)
}

// denial is how the API server says that an admission webhook or a policy denied a request. Code and reason do not show it,
// because the webhook or policy chooses them: a denial with the reason Conflict would be mistaken for a stale cache.
var denial = regexp.MustCompile(`admission webhook "[^"]*" denied the request|ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request`)

// noPermission is how the API server says that the user of a request lacks a permission: for the request
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go), or for its owner reference
// (k8s.io/kubernetes/plugin/pkg/admission/gc). That says nothing about the Foo. At the end of an upgrade, for instance, the
// operator has the permission.
var noPermission = regexp.MustCompile(`User "[^"]*" cannot [a-z]+ |cannot set (an ownerRef|blockOwnerDeletion) `)

// isRejection reports whether the API server, or an admission plugin, has rejected a request: the same one fails again, until
// the spec or the cluster changes.
func isRejection(err error) bool {
	forbidden := apierrors.IsForbidden(err) && !noPermission.MatchString(err.Error())
	return forbidden || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) || isDenied(err)
}

// isDenied reports whether an admission webhook or a policy denied a request.
func isDenied(err error) bool {
	return errors.As(err, new(apierrors.APIStatus)) && denial.MatchString(err.Error())
}

// IsGone reports whether what was to be deleted does not exist. A webhook that denies a deletion may say so too.
func IsGone(err error) bool { return apierrors.IsNotFound(err) && !isDenied(err) }

// AsRejected returns the error of the first class in err, or nil if there is none.
func AsRejected(err error) *Failure {
	failure, _ := errors.AsType[*Failure](err)
	return failure
}

// IsNameConflict reports whether a failure is a NameConflict.
func IsNameConflict(failure *Failure) bool {
	return failure != nil && failure.Reason == v1alpha1.ReasonNameConflict
}

// IsOwnedByOthers reports whether an apply that was not forced failed because of a Deployment that the cache lacks. Either
// another writer owns fields of it, or another Foo owns it: that has the same field owner, so no fields are in conflict,
// but its selector differs and is immutable.
func IsOwnedByOthers(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonConflict:
		return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
	case metav1.StatusReasonInvalid:
		var status apierrors.APIStatus
		return errors.As(err, &status) && status.Status().Details != nil &&
			slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "spec.selector" })
	}
	return false
}

// StartError sorts the response to the list of Foos that an operator begins with. It returns an error if waiting does not
// help (no such cluster, an unknown user, a missing permission, no CRD), which ends the process, and nil if there is
// no error or the API server has a temporary one.
func StartError(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return fmt.Errorf("listing Foos: %w: the cluster has no CRD for them: `make install` installs it", err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err), !errors.As(err, new(apierrors.APIStatus)):
		return fmt.Errorf("listing Foos: %w", err)
	}
	return nil
}
