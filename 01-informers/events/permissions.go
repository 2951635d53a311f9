package main

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/lesson"
)

// lackPermissions records Events as users with different Roles. The recorder needs create and patch of events in
// events.k8s.io. A rule for events in the core group, which are the same objects, does not include it.
func (s *session) lackPermissions(ctx context.Context) error {
	s.Printf("5. Permissions: create and patch of events in events.k8s.io\n")
	for _, verbs := range [][]string{{"create", "patch"}, {"create"}} {
		client, err := s.userWith(ctx, verbs)
		if err != nil {
			return err
		}
		recording, err := record(ctx, client, nil)
		if err != nil {
			return err
		}
		for attempt := range 2 {
			recording.Eventf(s.subject, s.other, corev1.EventTypeNormal, "Allowed", "May"+strings.Join(verbs, ""), "a note")
			if err := recording.sink.until(ctx, func(t totals) bool { return t.creates+t.patches > attempt }); err != nil {
				return err
			}
		}
		if err := recording.Close(ctx); err != nil {
			return err
		}
		t := recording.sink.sent()
		s.Printf("   with %s: %d create, %d patch, rejected %d\n", strings.Join(verbs, " and "), t.creates, t.patches, t.failed)
	}
	return nil
}

// userWith returns a client of a user with these permissions for events, once the authorizer has them.
func (s *session) userWith(ctx context.Context, verbs []string) (kubernetes.Interface, error) {
	name := "recorder-" + strings.Join(verbs, "-")
	user := "system:serviceaccount:" + s.Namespace + ":" + name
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: verbs}},
	}
	if _, err := s.Client.RbacV1().Roles(s.Namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating Role %s: %w", name, err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := s.Client.RbacV1().RoleBindings(s.Namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating RoleBinding %s: %w", name, err)
	}
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: s.Namespace, Verb: "create", Group: "events.k8s.io", Resource: "events",
		},
	}}
	var failure error
	err = lesson.Until(ctx, name+" has its permissions", func() bool {
		result, err := s.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		failure = err
		return err != nil || result.Status.Allowed
	})
	if failure != nil {
		return nil, fmt.Errorf("reviewing the permissions of %s: %w", name, failure)
	}
	return client, err
}
