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

// invalid is the API server's answer where it finds fault with one field.
func invalid(path ...string) *apierrors.StatusError {
	return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web",
		field.ErrorList{field.Invalid(field.NewPath(path[0], path[1:]...), "x", "no")})
}

// terminating is the API server's answer in a namespace that is on its way out.
func terminating() *apierrors.StatusError {
	err := apierrors.NewForbidden(deployments, "web", errors.New("being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// ownedByOthers is the API server's answer to an apply of fields that another manager owns.
func ownedByOthers() *apierrors.StatusError {
	return apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}}, "conflict")
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err     error
		refused bool
		stale   bool
	}{
		"Invalid":                  {invalid("spec", "replicas"), true, false},
		"Forbidden":                {apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota")), true, false},
		"BadRequest":               {apierrors.NewBadRequest("no"), true, false},
		"RequestEntityTooLarge":    {apierrors.NewRequestEntityTooLargeError("no"), true, false},
		"Invalid, wrapped":         {fmt.Errorf("outer: %w", invalid("spec")), true, false},
		"another uid":              {invalid("metadata", "uid"), false, true},
		"a namespace that goes":    {terminating(), false, false},
		"Conflict":                 {apierrors.NewConflict(deployments, "web", errors.New("changed")), false, true},
		"TooManyRequests":          {apierrors.NewTooManyRequests("busy", 1), false, false},
		"InternalError":            {apierrors.NewInternalError(errors.New("etcd")), false, false},
		"ServiceUnavailable":       {apierrors.NewServiceUnavailable("later"), false, false},
		"Timeout":                  {apierrors.NewTimeoutError("slow", 1), false, false},
		"Unauthorized":             {apierrors.NewUnauthorized("the token ran out"), false, false},
		"a proxy's error":          {apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", deployments, "web", "", 0, true), false, false},
		"no connection":            {errors.New("connection refused"), false, false},
		"the end of the time":      {context.DeadlineExceeded, false, false},
		"NotFound, the namespace?": {apierrors.NewNotFound(deployments, "web"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			err := Classify("applying Deployment web", test.err)
			refusal := AsRefusal(err)
			isRefusal := refusal != nil
			g.Expect(isRefusal).To(Equal(test.refused))
			g.Expect(errors.Is(errors.Join(errors.New("other"), err), ErrStale)).To(Equal(test.stale))
			if !test.refused {
				g.Expect(err).To(MatchError(HavePrefix("applying Deployment web: ")))
				g.Expect(err).To(MatchError(test.err))
				return
			}
			g.Expect(refusal.Reason).To(Equal(v1alpha1.ReasonApplyFailed))
			g.Expect(refusal.Message).To(Equal(test.err.Error()), "the API server's own text")
			g.Expect(IsNameConflict(refusal)).To(BeFalse())
		})
	}
	NewWithT(t).Expect(Classify("applying", nil)).To(Succeed())
}

func TestIsOwnedByOthers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(IsOwnedByOthers(ownedByOthers())).To(BeTrue())
	g.Expect(IsOwnedByOthers(invalid("spec", "selector"))).To(BeTrue(), "another Foo's")
	g.Expect(IsOwnedByOthers(invalid("spec", "replicas"))).To(BeFalse())
	g.Expect(IsOwnedByOthers(apierrors.NewConflict(deployments, "web", errors.New("changed")))).To(BeFalse(), "not about who owns what")
	g.Expect(IsOwnedByOthers(nil)).To(BeFalse())
}

func TestNamespaceIsTerminating(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(NamespaceIsTerminating(Classify("applying", terminating()))).To(BeTrue())
	g.Expect(NamespaceIsTerminating(apierrors.NewForbidden(deployments, "web", nil))).To(BeFalse())
	g.Expect(NamespaceIsTerminating(nil)).To(BeFalse())
}

func TestAsRefusalFindsOneAmongOthers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(IsNameConflict(AsRefusal(errors.Join(errors.New("other"), NameConflict("web"))))).To(BeTrue())
	none := AsRefusal(nil) == nil && AsRefusal(errors.New("other")) == nil
	g.Expect(none).To(BeTrue())
}
