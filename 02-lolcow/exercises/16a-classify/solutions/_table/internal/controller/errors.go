package controller

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reasons are those of the condition Ready for a request that failed. Where it is empty, the failure says nothing about the
// Lolcow: what was read is out of date. What is not in the table may succeed the next time. The functions look at the code, too:
// a webhook may deny a request without a reason.
var reasons = []struct {
	is     func(error) bool
	reason string
}{
	{apierrors.IsConflict, ""},
	{apierrors.IsAlreadyExists, ""},
	{apierrors.IsInvalid, "ApplyFailed"},
	{apierrors.IsForbidden, "ApplyFailed"},
	{apierrors.IsBadRequest, "ApplyFailed"},
}

func reasonOf(err error) string {
	if portConflict(err) {
		return "PortConflict"
	}
	for _, one := range reasons {
		if one.is(err) {
			return one.reason
		}
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
