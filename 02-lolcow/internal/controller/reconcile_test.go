package controller

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

func TestCreateToServing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)

	lolcow := w.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Replicas: new(int32(2))})
	w.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	w.Expect(lolcow.Status.Greeting).To(BeEmpty(), "nothing is served yet")
	w.Expect(lolcow.Status.Port).To(BeNumerically(">=", 30000), "the port that the cluster picked")
	w.Expect(w.recorded()).To(BeEmpty(), "rolling out is a condition, not an Event")

	w.rollOut("cow")
	w.reconcile("cow")
	lolcow = w.get("cow")
	w.expectReady(lolcow, metav1.ConditionTrue, v1alpha1.ReasonServing)
	w.Expect(lolcow.Status.Greeting).To(Equal("Moo"))
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal Serving")))

	for _, child := range []client.Object{w.deployment(), w.service()} {
		w.Expect(metav1.IsControlledBy(child, lolcow)).To(BeTrue(), "%T is left to the garbage collector", child)
	}
}

func TestGreetingChangesOnlyWhenItIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("cow", v1alpha1.LolcowSpec{Greeting: "old"})
	w.rollOut("cow")
	w.reconcile("cow")

	lolcow := w.change(func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "new" })
	w.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	w.Expect(lolcow.Status.Greeting).To(Equal("old"))
	w.Expect(w.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--", "new"}))

	w.rollOut("cow")
	w.reconcile("cow")
	lolcow = w.get("cow")
	w.expectReady(lolcow, metav1.ConditionTrue, v1alpha1.ReasonServing)
	w.Expect(lolcow.Status.Greeting).To(Equal("new"))

	w.change(func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "" })
	w.rollOut("cow")
	w.reconcile("cow")
	w.Expect(w.get("cow").Status.Greeting).To(BeEmpty(), "each pod serves a fortune of its own")
	w.Expect(w.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--"}))
}

func TestScaledToZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	w.rollOut("cow")
	w.reconcile("cow")

	lolcow := w.change(func(spec *v1alpha1.LolcowSpec) { spec.Replicas = new(int32(0)) })
	w.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	w.Expect(lolcow.Status.Greeting).To(Equal("Moo"), "the pod is still there")

	w.rollOut("cow")
	w.reconcile("cow")
	lolcow = w.get("cow")
	w.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonScaledToZero)
	w.Expect(lolcow.Status.Greeting).To(BeEmpty())
}

// The seed's author saw the port of the spec arrive as zero.
func TestSeedBug_PortIsTakenFromTheSpec(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lolcow := w.create("cow", v1alpha1.LolcowSpec{Port: new(int32(30010))})
	w.Expect(w.service().Spec.Ports[0].NodePort).To(Equal(int32(30010)))
	w.Expect(lolcow.Status.Port).To(Equal(int32(30010)))
}

// The seed's author had to delete the Service by hand before a new port was taken: "provided port is
// already allocated". Here the Service is changed in place, and changed back.
func TestSeedBug_PortAlreadyAllocated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("cow", v1alpha1.LolcowSpec{Port: new(int32(30011))})
	uid := w.service().UID

	for _, port := range []int32{30012, 30011, 30012} {
		lolcow := w.change(func(spec *v1alpha1.LolcowSpec) { spec.Port = new(port) })
		w.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		w.Expect(lolcow.Status.Port).To(Equal(port))
		service := w.service()
		w.Expect(service.Spec.Ports).To(HaveLen(1))
		w.Expect(service.Spec.Ports[0].NodePort).To(Equal(port))
		w.Expect(service.UID).To(Equal(uid), "changed in place")
	}

	lolcow := w.change(func(spec *v1alpha1.LolcowSpec) { spec.Port = nil })
	w.Expect(lolcow.Status.Port).To(Equal(int32(30012)), "without a wish the Service keeps what it has")
}

func TestPortConflictIsReportedAndHeals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30013))})
	w.rollOut("cow")
	w.reconcile("cow")
	w.recorded()
	squatter := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "squatter", Namespace: w.namespace},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeNodePort,
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30014}},
		},
	}
	w.Expect(w.client.Create(w.ctx, squatter)).To(Succeed())

	lolcow := w.change(func(spec *v1alpha1.LolcowSpec) { spec.Port = new(int32(30014)) })
	ready := w.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonPortConflict)
	w.Expect(ready.Message).To(ContainSubstring("provided port is already allocated"))
	w.Expect(lolcow.Status.Port).To(Equal(int32(30013)), "the old port still serves")
	w.Expect(lolcow.Status.Greeting).To(Equal("Moo"))

	// No hot loop: the pauses grow to five seconds and stay there, and nothing more is said.
	var result ctrl.Result
	version := lolcow.ResourceVersion
	for range 10 {
		result = w.reconcile("cow")
		w.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
		w.clock.Step(result.RequeueAfter)
	}
	w.Expect(result.RequeueAfter).To(Equal(longestPortRetry))
	w.Expect(w.get("cow").ResourceVersion).To(Equal(version))
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning PortConflict")))

	w.Expect(w.client.Delete(w.ctx, squatter)).To(Succeed())
	w.Eventually(func(g Gomega) {
		w.reconcile("cow")
		lolcow := w.get("cow")
		g.Expect(lolcow.Status.Port).To(Equal(int32(30014)))
		g.Expect(readyOf(lolcow).Reason).To(Equal(v1alpha1.ReasonServing))
	}).WithTimeout(longestPortRetry).Should(Succeed())
}

func TestNameConflictLeavesTheForeignObjectAlone(t *testing.T) {
	t.Parallel()
	foreign := map[string]client.Object{
		"Deployment": &appsv1.Deployment{Spec: foreignDeploymentSpec()},
		"Service":    &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1234}}}},
	}
	for kind, object := range foreign {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			object.SetName("cow")
			object.SetNamespace(w.namespace)
			w.Expect(w.client.Create(w.ctx, object)).To(Succeed())
			version := object.GetResourceVersion()

			lolcow := w.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
			ready := w.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			w.Expect(ready.Message).To(HavePrefix(kind + " cow exists"))
			w.Expect(w.client.Get(w.ctx, w.key("cow"), object)).To(Succeed())
			w.Expect(object.GetResourceVersion()).To(Equal(version), "the foreign object is untouched")
			w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning NameConflict")))

			w.Expect(w.client.Delete(w.ctx, object)).To(Succeed())
			w.reconcile("cow")
			w.rollOut("cow")
			w.reconcile("cow")
			w.expectReady(w.get("cow"), metav1.ConditionTrue, v1alpha1.ReasonServing)
		})
	}
}

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30015))})
	wantDeployment, wantService := w.deployment(), w.service()

	// Edited: what is ours comes back, what another writer added stays.
	deployment := w.deployment()
	deployment.Spec.Replicas = new(int32(7))
	deployment.Spec.Template.Spec.Containers[0].Args = []string{"--", "Baa"}
	deployment.Spec.Template.Spec.Containers = append(deployment.Spec.Template.Spec.Containers,
		corev1.Container{Name: "sidecar", Image: "example.com/sidecar"})
	w.Expect(w.client.Update(w.ctx, deployment, client.FieldOwner("someone"))).To(Succeed())
	service := w.service()
	service.Spec.Ports[0].NodePort = 30016
	delete(service.Spec.Selector, labelInstance)
	w.Expect(w.client.Update(w.ctx, service, client.FieldOwner("someone"))).To(Succeed())

	w.reconcile("cow")
	deployment = w.deployment()
	w.Expect(*deployment.Spec.Replicas).To(Equal(int32(1)))
	w.Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--", "Moo"}))
	w.Expect(deployment.Spec.Template.Spec.Containers).To(ContainElement(HaveField("Name", "sidecar")))
	w.Expect(w.service().Spec).To(Equal(wantService.Spec))

	// Deleted: made again.
	w.Expect(w.client.Delete(w.ctx, deployment)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, w.service())).To(Succeed())
	w.Eventually(func(g Gomega) {
		w.reconcile("cow")
		g.Expect(w.deployment().Spec).To(Equal(wantDeployment.Spec))
		g.Expect(w.service().Spec.Ports).To(Equal(wantService.Spec.Ports))
	}).WithTimeout(longestPortRetry).Should(Succeed())
}

func TestImageNotPulledIsOneStatusWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("cow", v1alpha1.LolcowSpec{Image: "example.com/no-such-image"})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "cow-1", Namespace: w.namespace, Labels: dependentLabels(w.get("cow"))},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: containerName, Image: "example.com/no-such-image"}}},
	}
	w.Expect(w.client.Create(w.ctx, pod)).To(Succeed())

	const cause = `failed to pull: dial tcp: lookup example.com on 10.96.0.10:53: read udp 10.244.1.5:%s->10.96.0.10:53: i/o timeout`
	var versions []string
	for i, said := range []corev1.ContainerStateWaiting{
		{Reason: "ErrImagePull", Message: strings.Replace(cause, "%s", "41234", 1)},
		{Reason: "ImagePullBackOff", Message: `Back-off pulling image "example.com/no-such-image": ErrImagePull: ` + strings.Replace(cause, "%s", "41234", 1)},
		{Reason: "ErrImagePull", Message: strings.Replace(cause, "%s", "50001", 1)},
	} {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: containerName, Image: "example.com/no-such-image", State: corev1.ContainerState{Waiting: &said},
		}}
		w.Expect(w.client.Status().Update(w.ctx, pod)).To(Succeed())
		w.reconcile("cow")
		lolcow := w.get("cow")
		ready := w.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonImageNotPulled)
		w.Expect(ready.Message).To(ContainSubstring("i/o timeout"), "what the kubelet said, time %d", i)
		versions = append(versions, lolcow.ResourceVersion)
	}
	w.Expect(versions).To(HaveEach(versions[0]), "the kubelet's texts alternate; the status does not")
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning ImageNotPulled")))
}

func TestApplyFailedCarriesTheServersText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-deployments", Namespace: w.namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}},
	}
	w.Expect(w.client.Create(w.ctx, quota)).To(Succeed())
	// The part of Kubernetes' quota controller.
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	w.Expect(w.client.Status().Update(w.ctx, quota)).To(Succeed())
	w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())

	w.Eventually(func(g Gomega) {
		_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
		g.Expect(err).To(MatchError(ContainSubstring("exceeded quota: no-deployments")), "the queue tries again, ever more slowly")
	}).Should(Succeed())
	ready := w.expectReady(w.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	w.Expect(ready.Message).To(ContainSubstring("exceeded quota: no-deployments"))

	w.Expect(w.client.Delete(w.ctx, quota)).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
		g.Expect(err).NotTo(HaveOccurred())
	}).WithTimeout(settleTimeout).Should(Succeed())
	w.rollOut("cow")
	w.reconcile("cow")
	w.expectReady(w.get("cow"), metav1.ConditionTrue, v1alpha1.ReasonServing)
}

// The garbage collector's work in a namespace that is going away must not look like drift to repair.
func TestNamespaceGoingAwayIsNotAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("cow", v1alpha1.LolcowSpec{})
	before := w.get("cow")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	w.Expect(w.client.Delete(w.ctx, namespace)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, w.service())).To(Succeed())

	w.Expect(w.reconcile("cow").RequeueAfter).To(BeZero())
	w.Expect(readyOf(w.get("cow"))).To(Equal(readyOf(before)))
	w.Expect(w.recorded()).To(BeEmpty())
}

func foreignDeploymentSpec() appsv1.DeploymentSpec {
	labels := map[string]string{"app": "foreign"}
	return appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foreign", Image: "example.com/foreign"}}},
		},
	}
}
