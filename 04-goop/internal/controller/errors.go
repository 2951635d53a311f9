package controller

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Errors of a reconciliation are of three classes. The work queue retries them with back-off, except those that need no retry:
// an event reports that they are resolved, or only a restart of the operator resolves them (see retryable).
//
//  1. rejected: the API server rejects a dependent, or an object that is not ours has its name. The same request fails
//     until the spec or the cluster changes.
//  2. stale: what was read is older than what the API server has. A retry reads again.
//  3. transient: everything else, for instance a time-out, no connection, or an admission webhook that is down.
//
// Rejected and transient errors are reported in the status. A stale one is not: the status would be computed from
// what is known to be out of date. One that persists is reported nevertheless (retries.reportable).

// rejectedError is an error of the first class.
type rejectedError struct {
	// reason is that of the condition.
	reason, message string
	// cause is the API server's error; nil if another object is in the way.
	cause error
}

func (e *rejectedError) Error() string { return e.message }

func (e *rejectedError) Unwrap() error { return e.cause }

// errStale is an error of the second class. A Conflict of the API server is one, too.
var errStale = errors.New("the cache is behind the API server")

// errNamespaceTerminating says that nothing was created because the namespace is being deleted. It is of no class, and not
// reported, because the object with the status is being deleted, too.
var errNamespaceTerminating = errors.New("the namespace is being deleted")

// nameConflict says that an object with the name of a dependent exists, and has a different owner or none.
func nameConflict(dependent string) *rejectedError {
	return &rejectedError{
		reason:  v1alpha1.ReasonNameConflict,
		message: dependent + " already exists and has a different owner, or none: it is left unchanged",
	}
}

// changedByAdmission says that what the API server has stored is not what was written: another try would change nothing.
func changedByAdmission(field, dependent string) *rejectedError {
	return &rejectedError{
		reason:  v1alpha1.ReasonApplyFailed,
		message: fmt.Sprintf("an admission policy or webhook changes %s of %s", field, dependent),
	}
}

// classify tells rejected requests from those that may succeed when they are repeated. action says what was tried,
// and with which dependent: "changing KIND NAME", for instance.
func classify(action string, err error) error {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%s: %w: %w", action, errNamespaceTerminating, err)
	case isTooLarge(err):
		message := fmt.Sprintf("%s: %v: delete the Goop, and create one with a smaller spec", action, err)
		return &rejectedError{reason: v1alpha1.ReasonApplyFailed, message: message, cause: err}
	case isRejection(err):
		return &rejectedError{reason: v1alpha1.ReasonApplyFailed, message: err.Error(), cause: err}
	}
	return fmt.Errorf("%s: %w", action, err)
}

// denial is how the API server says that an admission webhook or a policy denied a request. Code and reason do not show it,
// because the webhook or policy chooses them: a denial with the reason Conflict would be mistaken for a stale cache.
var denial = regexp.MustCompile(`admission webhook "[^"]*" denied the request|ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request`)

// isRejection reports whether the API server, or an admission plugin, has rejected a request: the same one fails again, until
// the spec or the cluster changes.
func isRejection(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || isDenied(err)
}

// isDenied reports whether an admission webhook or a policy denied a request.
func isDenied(err error) bool {
	return errors.As(err, new(apierrors.APIStatus)) && denial.MatchString(err.Error())
}

// isGone reports whether what was to be changed or deleted does not exist. A webhook that denies a request may say so too.
func isGone(err error) bool { return apierrors.IsNotFound(err) && !isDenied(err) }

// tooLarge matches the errors for an object that is larger than etcd stores: the first is etcd's, the second its client's.
// The API server returns both with code 500.
var tooLarge = regexp.MustCompile(`etcdserver: request is too large|trying to send message larger than max`)

// isTooLarge reports whether what was written is larger than the API server accepts, or than etcd stores.
func isTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || (errors.As(err, new(apierrors.APIStatus)) && tooLarge.MatchString(err.Error()))
}

// isStale reports whether an error, or one of those that are joined in it, is of the second class.
func isStale(err error) bool {
	for _, one := range split(err) {
		var rejected *rejectedError
		if !errors.As(one, &rejected) && (errors.Is(one, errStale) || apierrors.IsConflict(one)) {
			return true
		}
	}
	return false
}

// failure is what the status says of rejected and transient errors.
type failure struct {
	reason, message string
}

// failureOf sums up what failed in a reconciliation; nil if nothing did. The first rejection gives the reason, because
// a user must resolve it; the message contains all of them.
func failureOf(err error) *failure {
	var found *failure
	var messages []string
	for _, one := range split(err) {
		var rejected *rejectedError
		if !errors.As(one, &rejected) {
			continue
		}
		if found == nil {
			found = &failure{reason: rejected.reason}
		}
		messages = append(messages, rejected.message)
	}
	switch {
	case found != nil:
		found.message = strings.Join(messages, "; ")
	case err != nil:
		found = &failure{reason: v1alpha1.ReasonAPIError, message: normalizeMessage(split(err)[0].Error())}
	}
	return found
}

// hasReason reports whether err contains a rejection with this reason.
func hasReason(err error, reason string) bool {
	for _, one := range split(err) {
		var rejected *rejectedError
		if errors.As(one, &rejected) && rejected.reason == reason {
			return true
		}
	}
	return false
}

// without returns err without the rejections that have this reason; nil if nothing else is left.
func without(err error, reason string) error {
	var others []error
	for _, one := range split(err) {
		if !hasReason(one, reason) {
			others = append(others, one)
		}
	}
	return errors.Join(others...)
}

// split returns the errors that are joined in err, at any depth; none for nil.
func split(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, split(one)...)
	}
	return all
}

// isRejected reports whether an error is of the first class.
func isRejected(err error) bool {
	var rejected *rejectedError
	return errors.As(err, &rejected)
}
