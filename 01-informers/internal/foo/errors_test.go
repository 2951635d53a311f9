package foo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

var deployments = appsv1.Resource("deployments")

// invalid is the API server's response that names one invalid field.
func invalid(path ...string) *apierrors.StatusError {
	return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web",
		field.ErrorList{field.Invalid(field.NewPath(path[0], path[1:]...), "x", "no")})
}

// terminating is the API server's response in a namespace that is being deleted.
func terminating() *apierrors.StatusError {
	err := apierrors.NewForbidden(deployments, "web", errors.New("being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// denied is the API server's response where an admission webhook denied the request, with the status that the webhook chose.
func denied(code int32, reason metav1.StatusReason) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "w.example.com" denied the request: no`,
	}}
}

// deniedByPolicy is the API server's response where a ValidatingAdmissionPolicy denied the request.
func deniedByPolicy(code int32, reason metav1.StatusReason) *apierrors.StatusError {
	err := denied(code, reason)
	err.ErrStatus.Message = `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`
	return err
}

// forbiddenToPatch is the API server's response to a user without the permission.
func forbiddenToPatch() *apierrors.StatusError {
	return apierrors.NewForbidden(deployments, "web", errors.New(`User "system:serviceaccount:a:b" cannot patch resource "deployments" in API group "apps" in the namespace "c"`))
}

// forbiddenToOwn is its response to a user without the permission for the finalizers of the owner.
func forbiddenToOwn() *apierrors.StatusError {
	return apierrors.NewForbidden(deployments, "web", errors.New("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"))
}

// without is a response with a code and no reason.
func without(code int32) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: "no"}}
}

// ownedByOthers is the API server's response to an apply of fields that another manager owns.
func ownedByOthers() *apierrors.StatusError {
	return apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}}, "conflict")
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err      error
		rejected bool
		stale    bool
	}{
		"Invalid":                  {invalid("spec", "replicas"), true, false},
		"Forbidden":                {apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota")), true, false},
		"BadRequest":               {apierrors.NewBadRequest("no"), true, false},
		"RequestEntityTooLarge":    {apierrors.NewRequestEntityTooLargeError("no"), true, false},
		"Invalid, wrapped":         {fmt.Errorf("outer: %w", invalid("spec")), true, false},
		"denied, 400":              {denied(http.StatusBadRequest, ""), true, false},
		"denied, 401":              {denied(http.StatusUnauthorized, ""), true, false},
		"denied, 406":              {denied(http.StatusNotAcceptable, ""), true, false},
		"denied, 409":              {denied(http.StatusConflict, metav1.StatusReasonConflict), true, false},
		"denied, 500":              {denied(http.StatusInternalServerError, metav1.StatusReasonInternalError), true, false},
		"denied by a policy, 401":  {deniedByPolicy(http.StatusUnauthorized, metav1.StatusReasonUnauthorized), true, false},
		"400 without a reason":     {without(http.StatusBadRequest), true, false},
		"403 without a reason":     {without(http.StatusForbidden), true, false},
		"413 without a reason":     {without(http.StatusRequestEntityTooLarge), true, false},
		"422 without a reason":     {without(http.StatusUnprocessableEntity), true, false},
		"no permission":            {forbiddenToPatch(), false, false},
		"no permission for owners": {forbiddenToOwn(), false, false},
		"no permission, denied":    {deniedByPolicy(http.StatusForbidden, metav1.StatusReasonForbidden), true, false},
		"a terminating namespace":  {terminating(), false, false},
		"Conflict":                 {apierrors.NewConflict(deployments, "web", errors.New("changed")), false, true},
		"TooManyRequests":          {apierrors.NewTooManyRequests("busy", 1), false, false},
		"InternalError":            {apierrors.NewInternalError(errors.New("etcd")), false, false},
		"ServiceUnavailable":       {apierrors.NewServiceUnavailable("later"), false, false},
		"Timeout":                  {apierrors.NewTimeoutError("slow", 1), false, false},
		"Unauthorized":             {apierrors.NewUnauthorized("the token has expired"), false, false},
		"a proxy's error":          {apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", deployments, "web", "", 0, true), false, false},
		"no connection":            {errors.New("connection refused"), false, false},
		"deadline exceeded":        {context.DeadlineExceeded, false, false},
		"NotFound, the namespace?": {apierrors.NewNotFound(deployments, "web"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			err := Classify("applying Deployment web", test.err)
			failure := AsRejected(err)
			isRejected := failure != nil
			g.Expect(isRejected).To(Equal(test.rejected))
			g.Expect(errors.Is(errors.Join(errors.New("other"), err), ErrStale)).To(Equal(test.stale))
			if !test.rejected {
				g.Expect(err).To(MatchError(HavePrefix("applying Deployment web: ")))
				g.Expect(err).To(MatchError(test.err))
				return
			}
			g.Expect(failure.Reason).To(Equal(v1alpha1.ReasonApplyFailed))
			g.Expect(failure.Message).To(Equal(test.err.Error()), "the API server's own text")
			g.Expect(IsNameConflict(failure)).To(BeFalse())
		})
	}
	NewWithT(t).Expect(Classify("applying", nil)).To(Succeed())
}

// The caches of an operator that starts try again after a temporary error.
func TestTemporaryErrorDoesNotEndTheStart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(StartError(nil)).To(Succeed())
	g.Expect(StartError(apierrors.NewInternalError(errors.New("etcd")))).To(Succeed())
}

func TestIsOwnedByOthers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(IsOwnedByOthers(ownedByOthers())).To(BeTrue())
	g.Expect(IsOwnedByOthers(invalid("spec", "selector"))).To(BeTrue(), "another Foo's")
	g.Expect(IsOwnedByOthers(invalid("spec", "replicas"))).To(BeFalse())
	g.Expect(IsOwnedByOthers(apierrors.NewConflict(deployments, "web", errors.New("changed")))).To(BeFalse(), "not about owned fields")
	g.Expect(IsOwnedByOthers(nil)).To(BeFalse())
}

func TestNamespaceIsTerminating(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(Classify("applying", terminating())).To(MatchError(ErrNamespaceTerminating))
	g.Expect(Classify("applying", apierrors.NewForbidden(deployments, "web", nil))).NotTo(MatchError(ErrNamespaceTerminating))
}

func TestAsRejectedFindsItAmongOtherErrors(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(IsNameConflict(AsRejected(errors.Join(errors.New("other"), NameConflict("web"))))).To(BeTrue())
	none := AsRejected(nil) == nil && AsRejected(errors.New("other")) == nil
	g.Expect(none).To(BeTrue())
}

// A webhook may deny a deletion with the code 404: the object still exists.
func TestDeniedDeletionIsNotGone(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(IsGone(apierrors.NewNotFound(appsv1.Resource("deployments"), "web"))).To(BeTrue())
	g.Expect(IsGone(denied(http.StatusNotFound, metav1.StatusReasonNotFound))).To(BeFalse())
	g.Expect(AsRejected(Classify("deleting Deployment web", denied(http.StatusNotFound, metav1.StatusReasonNotFound)))).NotTo(Succeed())
}
