package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/expect"
)

var _ = Describe("The operator", func() {
	It("writes at most five times from a Lolcow's creation until it is Ready, and never in steady state or on a restart", Serial, func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		lolcow := create(ctx, namespace, "cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
		expectServing(ctx, lolcow)
		// The Event is sent when all else is done, and not waited for.
		Eventually(ctx, env.WritesIn).WithArguments(namespace).WithTimeout(expect.Soon).
			Should(ContainElement(HaveField("ObjectRef.Resource", "events")))
		settled := env.WritesIn(ctx, namespace)
		Expect(len(settled)).To(BeNumerically("<=", 5), "%s", audit.Describe(settled))

		Expect(env.Operator.Restart(ctx)).To(Succeed())
		Consistently(ctx, env.WritesIn).WithArguments(namespace).WithTimeout(expect.SteadyState).WithPolling(time.Second).
			Should(HaveLen(len(settled)))
	})

	It("is killed in the middle of a rollout, and all converges, with nothing made twice", Serial, func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		lolcow := create(ctx, namespace, "cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30049))})
		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "Baa" })
		Expect(env.Operator.Kill(ctx)).To(Succeed())
		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Replicas, spec.Port = new(int32(2)), new(int32(30050)) })
		expectServing(ctx, lolcow)
		Expect(lolcow.Status.Greeting).To(Equal("Baa"))
		Expect(lolcow.Status.Port).To(Equal(int32(30050)))
		if env.Cluster.RunsContainers() {
			expectGreeting(ctx, 30050, "Baa")
		}
		var deployments appsv1.DeploymentList
		var services corev1.ServiceList
		Expect(env.Client.List(ctx, &deployments, client.InNamespace(namespace))).To(Succeed())
		Expect(env.Client.List(ctx, &services, client.InNamespace(namespace))).To(Succeed())
		Expect(deployments.Items).To(HaveLen(1))
		Expect(services.Items).To(HaveLen(1))
	})

	It("shows its metrics to those who may read them, and to no one else", Serial, func(ctx SpecContext) {
		env.ExpectGuardedMetrics(ctx, "lolcow-metrics-reader", "controller_runtime_reconcile_total")
	})

	It("holds no permission that it does not use, and lacks none that it uses", Serial, func(ctx SpecContext) {
		env.ExpectExactPermissions(ctx, derived, func() {
			expectServing(ctx, create(ctx, env.Namespace(ctx), "cow", v1alpha1.LolcowSpec{}))
		})
	})
})

// derived are permissions that no request is named after, and what they are for.
var derived = map[string]string{
	"create apps/deployments":             "an apply that creates is a patch in the log, and needs both",
	"create /services":                    "an apply that creates is a patch in the log, and needs both",
	"delete apps/deployments":             "the admission plugin wants it of those who correct owner references",
	"delete /services":                    "the admission plugin wants it of those who correct owner references",
	"update my.domain/lolcows/finalizers": "blockOwnerDeletion in the owner references",
	"patch events.k8s.io/events":          "an Event that comes again within minutes is counted up",
	"patch /events":                       "an Event of leader election that comes again is, too",
}
