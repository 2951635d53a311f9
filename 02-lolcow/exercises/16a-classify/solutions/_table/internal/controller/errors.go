package controller

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reasons are those of the condition Ready for a request that failed, by the reason of the API server. Where it is empty, the
// failure says nothing about the Lolcow: what was read is out of date. What is not in the table may succeed the next time.
var reasons = map[metav1.StatusReason]string{
	metav1.StatusReasonConflict:      "",
	metav1.StatusReasonAlreadyExists: "",
	metav1.StatusReasonInvalid:       "ApplyFailed",
	metav1.StatusReasonForbidden:     "ApplyFailed",
	metav1.StatusReasonBadRequest:    "ApplyFailed",
}

func reasonOf(err error) string {
	if portConflict(err) {
		return "PortConflict"
	}
	if reason, found := reasons[apierrors.ReasonForError(err)]; found {
		return reason
	}
	return "APIError"
}

// portConflict reports whether another Service has the node port.
func portConflict(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Details != nil && slices.ContainsFunc(status.ErrStatus.Details.Causes, func(cause metav1.StatusCause) bool {
		return strings.HasSuffix(cause.Field, "nodePort") && strings.Contains(cause.Message, "already allocated")
	})
}
