package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// healing is how long a conflict may outlive its cause.
const healing = 10 * time.Second

var _ = Describe("Conflicts", func() {
	It("says that a port is taken, keeps serving on the old one, and heals when it is free", func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		lolcow := create(ctx, namespace, "cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30045))})
		expectServing(ctx, lolcow)
		holder := squatter(ctx, namespace, 30046)

		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Port = new(int32(30046)) })
		expectNotReady(ctx, lolcow, v1alpha1.ReasonPortConflict)
		Expect(message(lolcow)).To(ContainSubstring("provided port is already allocated"))
		Expect(lolcow.Status.Port).To(Equal(int32(30045)))
		if env.Cluster.RunsContainers() {
			expectGreeting(ctx, 30045, "Moo")
		}
		version := lolcow.ResourceVersion
		expect.Always(ctx, env.Client, lolcow, func(g Gomega, l *v1alpha1.Lolcow) {
			g.Expect(l.ResourceVersion).To(Equal(version), "a conflict that lasts is not written again")
		})
		var events eventsv1.EventList
		Expect(env.Client.List(ctx, &events, client.InNamespace(namespace))).To(Succeed())
		Expect(warnings(events, lolcow)).To(ConsistOf(v1alpha1.ReasonPortConflict))

		Expect(env.Client.Delete(ctx, holder)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(lolcow), lolcow)).To(Succeed())
			g.Expect(lolcow.Status.Port).To(Equal(int32(30046)))
		}).WithTimeout(healing).WithPolling(expect.Interval).Should(Succeed())
		expectServing(ctx, lolcow)
	})

	It("leaves a Deployment that is not its own alone, and heals when it goes", func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		labels := map[string]string{"app": "other"}
		other := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cow"},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(0)),
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: env.Images["lolcow"]}}},
				},
			},
		}
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		lolcow := create(ctx, namespace, "cow", v1alpha1.LolcowSpec{})
		expectNotReady(ctx, lolcow, v1alpha1.ReasonNameConflict)
		spec := other.Spec
		refresh(ctx, other)
		Expect(other.OwnerReferences).To(BeEmpty())
		Expect(other.Spec.Template.Labels).To(Equal(spec.Template.Labels))

		Expect(env.Client.Delete(ctx, other)).To(Succeed())
		expectServing(ctx, lolcow)
	})

	It("repairs what someone edits or deletes", func(ctx SpecContext) {
		lolcow := create(ctx, env.Namespace(ctx), "cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30047))})
		expectServing(ctx, lolcow)

		deployment, service := deploymentOf(lolcow), serviceOf(lolcow)
		expect.Update(ctx, env.Client, deployment, func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(3))
			d.Spec.Template.Spec.Containers[0].Args = []string{"--", "Baa"}
		})
		expect.Object(ctx, env.Client, deployment, func(g Gomega, d *appsv1.Deployment) {
			g.Expect(*d.Spec.Replicas).To(Equal(int32(1)))
			g.Expect(d.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--", "Moo"}))
		})
		expect.Update(ctx, env.Client, service, func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30048 })
		expect.Object(ctx, env.Client, service, func(g Gomega, s *corev1.Service) {
			g.Expect(s.Spec.Ports[0].NodePort).To(Equal(int32(30047)))
		})

		for _, dependent := range []client.Object{deployment, service} {
			old := dependent.GetUID()
			Expect(env.Client.Delete(ctx, dependent)).To(Succeed())
			expect.Object(ctx, env.Client, dependent, func(g Gomega, c client.Object) {
				g.Expect(c.GetUID()).NotTo(Equal(old))
			})
		}
		expectServing(ctx, lolcow)
		Expect(lolcow.Status.Port).To(Equal(int32(30047)))
	})

	It("tells why an image is not pulled, once", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, e2e.ManualPods)
		const image = "no-such-registry.invalid/cow:1"
		lolcow := create(ctx, namespace, "cow", v1alpha1.LolcowSpec{Image: image})
		if !env.Cluster.RunsContainers() {
			failToPull(ctx, namespace, image)
		}
		expectNotReady(ctx, lolcow, v1alpha1.ReasonImageNotPulled)
		Expect(message(lolcow)).To(And(ContainSubstring(image), ContainSubstring("no such host")))
		version := lolcow.ResourceVersion
		expect.Always(ctx, env.Client, lolcow, func(g Gomega, l *v1alpha1.Lolcow) {
			g.Expect(l.ResourceVersion).To(Equal(version), "from %s", message(l))
		})
	})
})

// failToPull simulates the kubelet, where there is none, for the one pod of the namespace: its image cannot be pulled.
func failToPull(ctx SpecContext, namespace, image string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		var pods corev1.PodList
		g.Expect(env.Client.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1))
		pod := &pods.Items[0]
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "lolcow", Image: image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason:  "ErrImagePull",
				Message: "failed to resolve reference: dial tcp: lookup no-such-registry.invalid: no such host",
			}},
		}}
		g.Expect(env.Client.Status().Update(ctx, pod)).To(Succeed())
	}).WithTimeout(expect.Soon).WithPolling(expect.Interval).Should(Succeed())
}

func message(lolcow *v1alpha1.Lolcow) string {
	return ptr.Deref(apimeta.FindStatusCondition(lolcow.Status.Conditions, v1alpha1.ConditionReady), metav1.Condition{}).Message
}

// warnings are the reasons of the Warning Events about a Lolcow.
func warnings(events eventsv1.EventList, lolcow *v1alpha1.Lolcow) []string {
	var reasons []string
	for _, event := range events.Items {
		if event.Regarding.UID == lolcow.UID && event.Type == corev1.EventTypeWarning {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}
