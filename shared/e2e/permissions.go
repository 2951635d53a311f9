package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/expect"
)

// WritesIn returns what the operator wrote to the objects of a namespace so far, as far as it counts for a
// write budget.
func (e *Env) WritesIn(ctx context.Context, namespace string) []audit.Event {
	ginkgo.GinkgoHelper()
	events, err := audit.Read(ctx, e.Cluster, audit.By(e.Operator.User()), audit.Writes(), audit.Budgeted(), audit.InNamespace(namespace))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return events
}

// ExpectExactPermissions asserts that the roles bound to the operator hold no permission that it does not use, and lack
// none that it uses. The operator is started anew, with no lease to find; work has it do all that it ever does.
// derived are the permissions that no request is named after, and what they are for.
func (e *Env) ExpectExactPermissions(ctx context.Context, derived map[string]string, work func()) {
	ginkgo.GinkgoHelper()
	began := time.Now()
	gomega.Expect(e.Operator.Stop(ctx)).To(gomega.Succeed())
	gomega.Expect(e.Client.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(e.Operator.Namespace()))).To(gomega.Succeed())
	gomega.Expect(e.Operator.Start(ctx)).To(gomega.Succeed())
	work()
	// A request for its metrics has it create a TokenReview and a SubjectAccessReview.
	status, _, err := e.Operator.Metrics(ctx, e.tokenOf(ctx, e.Namespace(ctx), "curious"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(status).To(gomega.Equal(http.StatusForbidden))

	held := e.permissionsHeld(ctx)
	mine := []audit.Filter{audit.By(e.Operator.User()), audit.Since(began)}
	// Events are sent when all else is done, and the lease is renewed after two seconds.
	gomega.Eventually(ctx, func(g gomega.Gomega) {
		events, err := audit.Read(ctx, e.Cluster, mine...)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(unusedPermissions(held, audit.Permissions(events), derived)).To(gomega.BeEmpty(), "a role holds permissions that are never used")
	}).WithTimeout(expect.Soon).WithPolling(time.Second).Should(gomega.Succeed())
	// The authorizer's decision, not the status of the response: admission, too, answers Forbidden.
	rejected, err := audit.Read(ctx, e.Cluster, append(mine, audit.Where(func(e *audit.Event) bool {
		return e.Annotations["authorization.k8s.io/decision"] == "forbid"
	}))...)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(rejected).To(gomega.BeEmpty(), "the roles lack: %s", audit.Describe(rejected))
}

// ExpectGuardedMetrics asserts that the operator shows its metrics to those who are bound to a ClusterRole, and
// to no one else, and that these metrics are among them.
func (e *Env) ExpectGuardedMetrics(ctx context.Context, readerRole string, names ...string) {
	ginkgo.GinkgoHelper()
	namespace := e.Namespace(ctx)
	status, _, err := e.Operator.Metrics(ctx, "")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(status).To(gomega.Equal(http.StatusUnauthorized), "without a token")

	status, _, err = e.Operator.Metrics(ctx, e.tokenOf(ctx, namespace, "outsider"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(status).To(gomega.Equal(http.StatusForbidden), "with a token, but without the permission")

	reader := e.tokenOf(ctx, namespace, "reader")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: readerRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"}},
	}
	gomega.Expect(e.Client.Create(ctx, binding)).To(gomega.Succeed())
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { //nolint:contextcheck // the spec's own context ends with it
		gomega.Expect(e.Client.Delete(ctx, binding)).To(gomega.Succeed())
	})
	// The API server's authorizer may see the binding a moment later, and the operator remembers a
	// rejection for half a minute.
	gomega.Eventually(ctx, func(g gomega.Gomega) {
		status, body, err := e.Operator.Metrics(ctx, reader)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(status).To(gomega.Equal(http.StatusOK))
		for _, name := range names {
			g.Expect(body).To(gomega.ContainSubstring(name + "{"))
		}
	}).WithTimeout(expect.Eventually).WithPolling(time.Second).Should(gomega.Succeed())
}

// tokenOf makes a ServiceAccount and returns a token of it.
func (e *Env) tokenOf(ctx context.Context, namespace, name string) string {
	ginkgo.GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	gomega.Expect(e.Client.Create(ctx, account)).To(gomega.Succeed())
	token, err := e.Token(ctx, namespace, name)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return token
}

// permissionsHeld are those of every role that is bound to the operator's ServiceAccount, as audit.Permissions
// writes what was asked for.
func (e *Env) permissionsHeld(ctx context.Context) []string {
	ginkgo.GinkgoHelper()
	var everywhere rbacv1.ClusterRoleBindingList
	var inOne rbacv1.RoleBindingList
	gomega.Expect(e.Client.List(ctx, &everywhere)).To(gomega.Succeed())
	gomega.Expect(e.Client.List(ctx, &inOne)).To(gomega.Succeed())
	var rules []rbacv1.PolicyRule
	for _, binding := range everywhere.Items {
		if slices.ContainsFunc(binding.Subjects, e.isOperator) {
			rules = append(rules, e.rulesOf(ctx, binding.RoleRef, "")...)
		}
	}
	for _, binding := range inOne.Items {
		if slices.ContainsFunc(binding.Subjects, e.isOperator) {
			rules = append(rules, e.rulesOf(ctx, binding.RoleRef, binding.Namespace)...)
		}
	}
	permissions := permissionsIn(rules)
	gomega.Expect(permissions).NotTo(gomega.BeEmpty(), "no role is bound to %s", e.Operator.User())
	return permissions
}

func (e *Env) isOperator(subject rbacv1.Subject) bool {
	return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == e.Operator.Namespace() && subject.Name == e.Operator.ServiceAccount()
}

func (e *Env) rulesOf(ctx context.Context, ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	ginkgo.GinkgoHelper()
	if ref.Kind == "ClusterRole" {
		var role rbacv1.ClusterRole
		gomega.Expect(e.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, &role)).To(gomega.Succeed())
		return role.Rules
	}
	var role rbacv1.Role
	gomega.Expect(e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &role)).To(gomega.Succeed())
	return role.Rules
}

// permissionsIn takes rules apart: one "verb group/resource" for each combination.
func permissionsIn(rules []rbacv1.PolicyRule) []string {
	var permissions []string
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					permissions = append(permissions, verb+" "+group+"/"+resource)
				}
			}
			for _, url := range rule.NonResourceURLs {
				permissions = append(permissions, verb+" "+url)
			}
		}
	}
	return permissions
}

// unusedPermissions are those of held that are neither used nor derived.
func unusedPermissions(held, used []string, derived map[string]string) []string {
	var unused []string
	for _, permission := range held {
		// An informer gets its first state as a stream, by watch alone, and lists only where it cannot.
		what, isList := strings.CutPrefix(permission, "list ")
		if slices.Contains(used, permission) || derived[permission] != "" || isList && slices.Contains(used, "watch "+what) {
			continue
		}
		unused = append(unused, permission)
	}
	return unused
}
