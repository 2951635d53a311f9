package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

var _ = Describe("Failures", func() {
	It("reports that a quota leaves no pod, and heals when the quota is deleted", func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "no-pods"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		Expect(env.Client.Create(ctx, quota)).To(Succeed())
		expect.Object(ctx, env.Client, quota, func(g Gomega, q *corev1.ResourceQuota) { g.Expect(q.Status.Hard).NotTo(BeEmpty()) })

		lolcow := create(ctx, namespace, "cow", v1alpha1.LolcowSpec{})
		expectNotReady(ctx, lolcow, v1alpha1.ReasonPodsNotCreated)
		Expect(message(lolcow)).To(ContainSubstring("exceeded quota: no-pods"))
		expectUnchanged(ctx, lolcow)

		Expect(env.Client.Delete(ctx, quota)).To(Succeed())
		// The ReplicaSet controller waits ever longer between its attempts.
		expectServing(ctx, lolcow)
	})

	It("reports a crash loop with its exit code, in one message", Label(e2e.LabelContainers), func(ctx SpecContext) {
		// The operator's own image: without its flags it ends at once.
		lolcow := create(ctx, env.Namespace(ctx), "cow", v1alpha1.LolcowSpec{Image: env.Images["controller"]})
		expectNotReady(ctx, lolcow, v1alpha1.ReasonCrashLoopBackOff)
		Expect(message(lolcow)).To(ContainSubstring("keeps ending, last with exit code 1 (Error)"))
		// Its container runs, ends and waits in turn.
		expectUnchanged(ctx, lolcow)
	})

	It("owns the arguments without a greeting too", func(ctx SpecContext) {
		lolcow := create(ctx, env.Namespace(ctx), "cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
		expectServing(ctx, lolcow)
		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "" })
		expectServing(ctx, lolcow)
		deployment := deploymentOf(lolcow)
		expect.Update(ctx, env.Client, deployment, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Args = []string{"--", "Baa"}
		})
		expect.Object(ctx, env.Client, deployment, func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--"}))
		})
	})
})

// expectUnchanged asserts that what lasts is not written again.
func expectUnchanged(ctx SpecContext, lolcow *v1alpha1.Lolcow) {
	GinkgoHelper()
	version := lolcow.ResourceVersion
	expect.Always(ctx, env.Client, lolcow, func(g Gomega, l *v1alpha1.Lolcow) {
		g.Expect(l.ResourceVersion).To(Equal(version), "from %s", message(l))
	})
}
