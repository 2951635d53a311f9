package controller

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Errors of a reconciliation are of three classes:
//
//  1. rejected: the API server rejects a dependent, or an object that is not ours has its name. The same request fails
//     until the spec or the cluster changes.
//  2. stale: what was read is older than what the API server has. The next reconciliation reads again.
//  3. transient: everything else, for instance a time-out, no connection, or an admission webhook that is down.
//
// Rejected and transient errors are reported in the status. A stale one is not: the status would be computed from
// what is known to be out of date.

// rejectedError is an error of the first class.
type rejectedError struct {
	// reason is that of the condition.
	reason, message string
	// cause is the API server's error; nil if another object is in the way.
	cause error
}

func (e *rejectedError) Error() string { return e.message }

func (e *rejectedError) Unwrap() error { return e.cause }

// errStale is an error of the second class. So is a Conflict of the API server.
var errStale = errors.New("the cache is older than what the API server has")

// nameConflict says that an object has the name of a dependent and is not owned by the Goop.
func nameConflict(dependent string) *rejectedError {
	return &rejectedError{
		reason:  v1alpha1.ReasonNameConflict,
		message: dependent + " exists and is not owned by this Goop: it is left unchanged",
	}
}

// classify tells rejected requests from those that may succeed when they are repeated. action says what was tried,
// for instance "applying Service NAME".
func classify(action string, err error) error {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonInvalid, metav1.StatusReasonForbidden, metav1.StatusReasonBadRequest, metav1.StatusReasonRequestEntityTooLarge:
		return &rejectedError{reason: v1alpha1.ReasonApplyFailed, message: err.Error(), cause: err}
	}
	return fmt.Errorf("%s: %w", action, err)
}

// isStale tells whether an error, or one of those that are joined in it, is of the second class.
func isStale(err error) bool {
	for _, one := range split(err) {
		if errors.Is(one, errStale) || apierrors.IsConflict(one) {
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
// it needs a user; all rejections are named.
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

// without tells whether there are rejections of one reason in err, and returns what else there is.
func without(err error, reason string) (found bool, rest error) {
	var others []error
	for _, one := range split(err) {
		var rejected *rejectedError
		if errors.As(one, &rejected) && rejected.reason == reason {
			found = true
			continue
		}
		others = append(others, one)
	}
	return found, errors.Join(others...)
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

// errNamespaceTerminating says that something was not created because its namespace is being deleted. That is no
// obstacle to be reported: the Goop is deleted next.
var errNamespaceTerminating = errors.New("the namespace is being deleted")

// isRejected tells whether an error is of the first class.
func isRejected(err error) bool {
	var rejected *rejectedError
	return errors.As(err, &rejected)
}
