package inprocess

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/01-informers/internal/testserver"
)

// serviceAccount is the operator's, as in config/rbac/service_account.yaml.
const serviceAccount = "controller-manager"

// Account is a ServiceAccount that an operator runs under, in a namespace of its own, bound to the roles in
// config/rbac.
type Account struct {
	// Namespace is the ServiceAccount's, and that of the Lease of leader election.
	Namespace string
	// User is the name that the audit log has for it.
	User  string
	token string
	admin *rest.Config
}

// NewAccount creates one, and returns when its permissions are effective.
func NewAccount(tb testing.TB) *Account {
	tb.Helper()
	g := gomega.NewWithT(tb)
	namespace := testserver.Namespace(tb)
	a := &Account{Namespace: namespace, admin: testserver.Config(tb)}
	a.User, a.token = testserver.Token(tb, namespace, serviceAccount)
	create := func(object client.Object) {
		tb.Helper()
		g.Expect(client.IgnoreAlreadyExists(Client(tb).Create(tb.Context(), object))).To(gomega.Succeed())
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: serviceAccount}}
	for _, file := range []string{"role.yaml", "metrics_auth_role.yaml"} {
		role := readRole[rbacv1.ClusterRole](g, file)
		create(role)
		create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   subjects,
		})
	}
	role := readRole[rbacv1.Role](g, "leader_election_role.yaml")
	role.Namespace = namespace
	create(role)
	create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   subjects,
	})
	a.waitForPermissions(tb.Context(), g, Client(tb))
	return a
}

// Config returns the account's access to the server, without a limit on requests.
func (a *Account) Config() *rest.Config {
	config := rest.AnonymousClientConfig(a.admin)
	config.BearerToken = a.token
	config.QPS = -1
	return config
}

// waitForPermissions waits until the server's authorizer has the three bindings. Otherwise the first Deployment may be rejected,
// and the Foo would report that.
func (a *Account) waitForPermissions(ctx context.Context, g gomega.Gomega, admin client.Client) {
	for _, needed := range []authorizationv1.ResourceAttributes{
		{Group: "samplecontroller.example.com", Resource: "foos", Verb: "list"},
		{Group: "authentication.k8s.io", Resource: "tokenreviews", Verb: "create"},
		{Group: "coordination.k8s.io", Resource: "leases", Verb: "create", Namespace: a.Namespace},
	} {
		g.Eventually(func(g gomega.Gomega) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: a.User, ResourceAttributes: &needed,
			}}
			g.Expect(admin.Create(ctx, review)).To(gomega.Succeed())
			g.Expect(review.Status.Allowed).To(gomega.BeTrue(), "%s %s", needed.Verb, needed.Resource)
		}).WithTimeout(30 * time.Second).Should(gomega.Succeed())
	}
}

// readRole reads a file of config/rbac, wherever the test runs.
func readRole[T any](g gomega.Gomega, name string) *T {
	_, here, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "..", "config", "rbac", name))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	role := new(T)
	g.Expect(yaml.UnmarshalStrict(text, role)).To(gomega.Succeed(), name)
	return role
}
