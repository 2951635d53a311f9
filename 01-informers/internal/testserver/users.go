package testserver

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User returns access for a user who has only the permissions of every authenticated user, such as creating a
// SelfSubjectAccessReview. Allow grants more.
func User(tb testing.TB, name string) *rest.Config {
	tb.Helper()
	user, err := started(tb).AddUser(envtest.User{Name: name}, nil)
	expectNo(tb, err)
	return user.Config()
}

// Token creates a ServiceAccount, and returns its name as a user and a token of it.
func Token(tb testing.TB, namespace, name string) (user, token string) {
	tb.Helper()
	accounts := Client(tb).CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(tb.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	expectNo(tb, err)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	created, err := accounts.CreateToken(tb.Context(), name, request, metav1.CreateOptions{})
	expectNo(tb, err)
	return "system:serviceaccount:" + namespace + ":" + name, created.Status.Token
}

// Allow gives a user a permission. The server's authorizer has it a moment later.
func Allow(tb testing.TB, user string, rule rbacv1.PolicyRule) {
	tb.Helper()
	rbac := Client(tb).RbacV1()
	role, err := rbac.ClusterRoles().Create(tb.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: []rbacv1.PolicyRule{rule},
	}, metav1.CreateOptions{})
	expectNo(tb, err)
	_, err = rbac.ClusterRoleBindings().Create(tb.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	expectNo(tb, err)
}
