package e2e

import (
	"context"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/expect"
)

var _ = Describe("The operator", func() {
	It("writes at most five times from a Lolcow's creation until it is Ready, and never at rest or on a restart", func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		writes := func() []audit.Event {
			events, err := audit.Read(ctx, env.Cluster, audit.By(env.Operator.User()), audit.Writes(), audit.Budgeted(), audit.InNamespace(namespace))
			Expect(err).NotTo(HaveOccurred())
			return events
		}
		lolcow := create(ctx, namespace, "cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
		expectServing(ctx, lolcow)
		// The Event is sent when all else is done, and not waited for.
		Eventually(ctx, writes).WithTimeout(expect.Soon).Should(ContainElement(HaveField("ObjectRef.Resource", "events")))
		settled := writes()
		Expect(len(settled)).To(BeNumerically("<=", 5), "%s", audit.Describe(settled))

		Expect(env.Operator.Restart(ctx)).To(Succeed())
		Consistently(ctx, writes).WithTimeout(expect.AtRest).WithPolling(time.Second).Should(HaveLen(len(settled)))
	})

	It("is killed in the middle of a rollout, and all converges, with nothing made twice", func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		lolcow := create(ctx, namespace, "cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30631))})
		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "Baa" })
		Expect(env.Operator.Kill(ctx)).To(Succeed())
		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Replicas, spec.Port = new(int32(2)), new(int32(30632)) })
		expectServing(ctx, lolcow)
		Expect(lolcow.Status.Greeting).To(Equal("Baa"))
		Expect(lolcow.Status.Port).To(Equal(int32(30632)))
		if env.Cluster.RunsContainers() {
			expectGreeting(ctx, 30632, "Baa")
		}
		var deployments appsv1.DeploymentList
		var services corev1.ServiceList
		Expect(env.Client.List(ctx, &deployments, client.InNamespace(namespace))).To(Succeed())
		Expect(env.Client.List(ctx, &services, client.InNamespace(namespace))).To(Succeed())
		Expect(deployments.Items).To(HaveLen(1))
		Expect(services.Items).To(HaveLen(1))
	})

	It("shows its metrics to those who may read them, and to no one else", func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		status, _, err := env.Operator.Metrics(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusUnauthorized), "without a token")

		outsider := tokenOf(ctx, namespace, "outsider")
		status, _, err = env.Operator.Metrics(ctx, outsider)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusForbidden), "with a token, but without the right")

		reader := tokenOf(ctx, namespace, "reader")
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-metrics"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lolcow-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "reader"}},
		}
		Expect(env.Client.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Client.Delete(ctx, binding)).To(Succeed()) })
		// The API server's authorizer may hear of the binding a moment later, and the operator remembers
		// a refusal for half a minute.
		Eventually(ctx, func(g Gomega) {
			status, body, err := env.Operator.Metrics(ctx, reader)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusOK))
			g.Expect(body).To(ContainSubstring("controller_runtime_reconcile_total"))
		}).WithTimeout(expect.Eventually).WithPolling(time.Second).Should(Succeed())
	})

	It("holds no right that it does not use, and lacks none that it uses", func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		lolcow := create(ctx, namespace, "cow", v1alpha1.LolcowSpec{})
		expectServing(ctx, lolcow)

		var used []string
		byOperator := audit.By(env.Operator.User())
		Eventually(ctx, func(g Gomega) {
			events, err := audit.Read(ctx, env.Cluster, byOperator)
			g.Expect(err).NotTo(HaveOccurred())
			used = audit.Permissions(events)
			g.Expect(used).To(ContainElement("create events.k8s.io/events"))
		}).WithTimeout(expect.Soon).Should(Succeed())

		var role rbacv1.ClusterRole
		Expect(env.Client.Get(ctx, client.ObjectKey{Name: "lolcow-manager-role"}, &role)).To(Succeed())
		// An informer gets its first state as a stream, by watch alone, and lists only where it cannot.
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				what := rule.APIGroups[0] + "/" + rule.Resources[0]
				held := verb + " " + what
				streamed := verb == "list" && slices.Contains(used, "watch "+what)
				Expect(slices.Contains(used, held) || streamed || derived[held] != "").To(BeTrue(), "the role holds %q, which is never used", held)
			}
		}
		// The authorizer's word, not the answer's code: admission, too, answers Forbidden.
		refused, err := audit.Read(ctx, env.Cluster, byOperator, func(e *audit.Event) bool {
			return e.Annotations["authorization.k8s.io/decision"] == "forbid"
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(refused).To(BeEmpty(), "the role lacks: %s", audit.Describe(refused))
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

// derived are rights that no request is named after, and what they are for.
var derived = map[string]string{
	"create apps/deployments":             "an apply that creates is a patch in the log, and needs both",
	"create /services":                    "an apply that creates is a patch in the log, and needs both",
	"update my.domain/lolcows/finalizers": "blockOwnerDeletion in the owner references",
	"patch events.k8s.io/events":          "an Event that comes again within minutes is counted up",
}
