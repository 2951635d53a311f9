package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/expect"
)

var _ = Describe("The operator's rights:", func() {
	It("its roles hold none that it does not use, and lack none that it uses", func(ctx SpecContext) {
		began := time.Now()
		// From nothing: with no lease to find, it has to make one.
		Expect(env.Operator.Stop(ctx)).To(Succeed())
		Expect(env.Client.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(env.Operator.Namespace()))).To(Succeed())
		Expect(env.Operator.Start(ctx)).To(Succeed())
		namespace := env.Namespace(ctx)
		foo := create(ctx, namespace, "web", 1)
		expectAvailable(ctx, foo)
		old := deploymentOf(foo)
		change(ctx, foo, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "renamed" })
		expectAvailable(ctx, foo)
		expect.Gone(ctx, env.Client, old)
		// Someone asks for its metrics, so that it has to ask who that is and what they may do.
		status, _, err := env.Operator.Metrics(ctx, tokenOf(ctx, namespace, "outsider"))
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusForbidden))

		var used []string
		mine := []audit.Filter{audit.By(env.Operator.User()), audit.Since(began)}
		Eventually(ctx, func(g Gomega) {
			events, err := audit.Read(ctx, env.Cluster, mine...)
			g.Expect(err).NotTo(HaveOccurred())
			used = audit.Permissions(events)
			g.Expect(used).To(ContainElements("create events.k8s.io/events", "update coordination.k8s.io/leases"))
		}).WithTimeout(expect.Soon).Should(Succeed())
		for _, rule := range rulesOf(ctx) {
			for _, held := range rightsOf(rule) {
				Expect(isUsed(held, used)).To(BeTrue(), "a role holds %q, which is never used", held)
			}
		}
		// The authorizer's word, not the answer's code: admission, too, answers Forbidden.
		refused, err := audit.Read(ctx, env.Cluster, append(mine, func(e *audit.Event) bool {
			return e.Annotations["authorization.k8s.io/decision"] == "forbid"
		})...)
		Expect(err).NotTo(HaveOccurred())
		Expect(refused).To(BeEmpty(), "the roles lack: %s", audit.Describe(refused))
	})

	It("it shows its metrics to those who may read them, and to no one else", func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		status, _, err := env.Operator.Metrics(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusUnauthorized), "without a token")

		status, _, err = env.Operator.Metrics(ctx, tokenOf(ctx, namespace, "outsider"))
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusForbidden), "with a token, but without the right")

		reader := tokenOf(ctx, namespace, "reader")
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-metrics"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "foo-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "reader"}},
		}
		Expect(env.Client.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Client.Delete(ctx, binding)).To(Succeed()) })
		// The API server's authorizer may hear of the binding a moment later, and the operator remembers
		// a refusal for a while.
		Eventually(ctx, func(g Gomega) {
			status, body, err := env.Operator.Metrics(ctx, reader)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusOK))
			for _, name := range []string{"workqueue_adds_total", "rest_client_requests_total", "leader_election_master_status"} {
				g.Expect(body).To(ContainSubstring(name + "{"))
			}
		}).WithTimeout(expect.Eventually).WithPolling(time.Second).Should(Succeed())
	})
})

// tokenOf makes a ServiceAccount and returns a token of it.
func tokenOf(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(env.Client.Create(ctx, account)).To(Succeed())
	token, err := env.Token(ctx, namespace, name)
	Expect(err).NotTo(HaveOccurred())
	return token
}

// rulesOf are those of every role that is bound to the operator.
func rulesOf(ctx context.Context) []rbacv1.PolicyRule {
	GinkgoHelper()
	var rules []rbacv1.PolicyRule
	for _, name := range []string{"foo-manager-role", "foo-metrics-auth-role"} {
		var role rbacv1.ClusterRole
		Expect(env.Client.Get(ctx, client.ObjectKey{Name: name}, &role)).To(Succeed())
		rules = append(rules, role.Rules...)
	}
	var role rbacv1.Role
	Expect(env.Client.Get(ctx, client.ObjectKey{Namespace: env.Operator.Namespace(), Name: "foo-leader-election-role"}, &role)).To(Succeed())
	return append(rules, role.Rules...)
}

// rightsOf takes a rule apart, as audit.Permissions writes what was asked for.
func rightsOf(rule rbacv1.PolicyRule) []string {
	var rights []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights = append(rights, verb+" "+group+"/"+resource)
			}
		}
	}
	return rights
}

func isUsed(held string, used []string) bool {
	if slices.Contains(used, held) || derived[held] != "" {
		return true
	}
	// An informer gets its first state as a stream, by watch alone, and lists only where it cannot.
	what, isList := strings.CutPrefix(held, "list ")
	return isList && slices.Contains(used, "watch "+what)
}

// derived are rights that no request is named after, and what they are for.
var derived = map[string]string{
	"create apps/deployments":                             "an apply that creates is a patch in the log, and needs both",
	"update samplecontroller.example.com/foos/finalizers": "blockOwnerDeletion in the owner references",
	"patch events.k8s.io/events":                          "an Event that comes again within minutes is counted up",
}
