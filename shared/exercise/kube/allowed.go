package kube

import (
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/shared/exercise/check"
)

// Allowed asks the API server what kubectl auth can-i asks: whether a user may do this. A ServiceAccount is in the groups of
// all ServiceAccounts too.
func Allowed(b *check.B, user string, request authorizationv1.ResourceAttributes) bool {
	request.Resource, request.Subresource, _ = strings.Cut(request.Resource, "/")
	groups := []string{"system:authenticated"}
	if parts := strings.Split(user, ":"); len(parts) == 4 && parts[1] == "serviceaccount" {
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+parts[2])
	}
	review, err := Client(b).AuthorizationV1().SubjectAccessReviews().Create(b.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &request},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("asking the API server what %s may do: %v", user, err)
	}
	return review.Status.Allowed
}

// WaitAllowed waits until the API server, which learns of roles and bindings by watches, allows this to a user.
func WaitAllowed(b *check.B, user string, request authorizationv1.ResourceAttributes) {
	b.Eventually(30*time.Second, func() string {
		if !Allowed(b, user, request) {
			return "the API server does not use the new role of " + user
		}
		return ""
	})
}
