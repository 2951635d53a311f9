package controller

import (
	"strings"
	"testing"
	"time"

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
	f := newTestEnv(t)

	lolcow := f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Replicas: new(int32(2))})
	f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	f.Expect(lolcow.Status.Greeting).To(BeEmpty(), "nothing is served yet")
	f.Expect(lolcow.Status.Port).To(BeNumerically(">=", 30000), "the port that the cluster picked")
	f.Expect(f.recorded()).To(BeEmpty(), "rolling out is a condition, not an Event")

	f.rollOut("cow")
	f.reconcile("cow")
	lolcow = f.get("cow")
	f.expectReady(lolcow, metav1.ConditionTrue, v1alpha1.ReasonServing)
	f.Expect(lolcow.Status.Greeting).To(Equal("Moo"))
	f.Expect(f.recorded()).To(ConsistOf(HavePrefix("Normal Serving")))

	for _, dependent := range []client.Object{f.deployment(), f.service()} {
		f.Expect(metav1.IsControlledBy(dependent, lolcow)).To(BeTrue(), "%T is not controlled by the Lolcow", dependent)
	}
}

func TestGreetingChangesOnlyWhenItIsServed(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "old"})
	f.rollOut("cow")
	f.reconcile("cow")

	lolcow := f.change(func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "new" })
	f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	f.Expect(lolcow.Status.Greeting).To(Equal("old"))
	f.Expect(f.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--", "new"}))

	f.rollOut("cow")
	f.reconcile("cow")
	lolcow = f.get("cow")
	f.expectReady(lolcow, metav1.ConditionTrue, v1alpha1.ReasonServing)
	f.Expect(lolcow.Status.Greeting).To(Equal("new"))

	f.change(func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "" })
	f.rollOut("cow")
	f.reconcile("cow")
	f.Expect(f.get("cow").Status.Greeting).To(BeEmpty(), "each pod serves a fortune of its own")
	f.Expect(f.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--"}))
}

func TestScaledToZero(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	f.rollOut("cow")
	f.reconcile("cow")

	lolcow := f.change(func(spec *v1alpha1.LolcowSpec) { spec.Replicas = new(int32(0)) })
	f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	f.Expect(lolcow.Status.Greeting).To(Equal("Moo"), "the pod is still there")

	f.rollOut("cow")
	f.reconcile("cow")
	lolcow = f.get("cow")
	f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonScaledToZero)
	f.Expect(lolcow.Status.Greeting).To(BeEmpty())
}

// The seed's author saw the port of the spec arrive as zero.
func TestSeedBug_PortIsTakenFromTheSpec(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	lolcow := f.create("cow", v1alpha1.LolcowSpec{Port: new(int32(30010))})
	f.Expect(f.service().Spec.Ports[0].NodePort).To(Equal(int32(30010)))
	f.Expect(lolcow.Status.Port).To(Equal(int32(30010)))
}

// The seed's author had to delete the Service by hand before a new port was taken: "provided port is
// already allocated". Here the Service is changed in place, and changed back.
func TestSeedBug_PortAlreadyAllocated(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Port: new(int32(30011))})
	uid := f.service().UID

	for _, port := range []int32{30012, 30011, 30012} {
		lolcow := f.change(func(spec *v1alpha1.LolcowSpec) { spec.Port = new(port) })
		f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		f.Expect(lolcow.Status.Port).To(Equal(port))
		service := f.service()
		f.Expect(service.Spec.Ports).To(HaveLen(1))
		f.Expect(service.Spec.Ports[0].NodePort).To(Equal(port))
		f.Expect(service.UID).To(Equal(uid), "changed in place")
	}

	lolcow := f.change(func(spec *v1alpha1.LolcowSpec) { spec.Port = nil })
	f.Expect(lolcow.Status.Port).To(Equal(int32(30012)), "without a wish the Service keeps what it has")
}

func TestPortConflictIsReportedAndHeals(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30013))})
	f.rollOut("cow")
	f.reconcile("cow")
	f.recorded()
	squatter := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "squatter", Namespace: f.namespace},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeNodePort,
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30014}},
		},
	}
	f.Expect(f.client.Create(f.ctx, squatter)).To(Succeed())

	lolcow := f.change(func(spec *v1alpha1.LolcowSpec) { spec.Port = new(int32(30014)) })
	ready := f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonPortConflict)
	f.Expect(ready.Message).To(ContainSubstring("provided port is already allocated"))
	f.Expect(lolcow.Status.Port).To(Equal(int32(30013)), "the old port still serves")
	f.Expect(lolcow.Status.Greeting).To(Equal("Moo"))

	// No hot loop: the pauses grow to five seconds and stay there, and nothing more is said.
	var result ctrl.Result
	version := lolcow.ResourceVersion
	for range 10 {
		result = f.reconcile("cow")
		f.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
		f.clock.Step(result.RequeueAfter)
	}
	f.Expect(result.RequeueAfter).To(Equal(longestPortRetry))
	f.Expect(f.get("cow").ResourceVersion).To(Equal(version))
	f.Expect(f.recorded()).To(ConsistOf(HavePrefix("Warning PortConflict")))

	f.Expect(f.client.Delete(f.ctx, squatter)).To(Succeed())
	f.Eventually(func(g Gomega) {
		f.reconcile("cow")
		lolcow := f.get("cow")
		g.Expect(lolcow.Status.Port).To(Equal(int32(30014)))
		g.Expect(readyOf(lolcow).Reason).To(Equal(v1alpha1.ReasonServing))
	}).WithTimeout(longestPortRetry).Should(Succeed())
}

func TestNameConflictLeavesTheOtherObjectAlone(t *testing.T) {
	t.Parallel()
	others := map[string]client.Object{
		"Deployment": &appsv1.Deployment{Spec: otherDeploymentSpec()},
		"Service":    &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1234}}}},
	}
	for kind, object := range others {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newTestEnv(t)
			object.SetName("cow")
			object.SetNamespace(f.namespace)
			f.Expect(f.client.Create(f.ctx, object)).To(Succeed())
			version := object.GetResourceVersion()

			lolcow := f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
			ready := f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			f.Expect(ready.Message).To(HavePrefix(kind + " cow already exists"))
			f.Expect(f.client.Get(f.ctx, f.key("cow"), object)).To(Succeed())
			f.Expect(object.GetResourceVersion()).To(Equal(version), "the other object is untouched")
			f.Expect(f.recorded()).To(ConsistOf(HavePrefix("Warning NameConflict")))

			f.Expect(f.client.Delete(f.ctx, object)).To(Succeed())
			f.reconcile("cow")
			f.rollOut("cow")
			f.reconcile("cow")
			f.expectReady(f.get("cow"), metav1.ConditionTrue, v1alpha1.ReasonServing)
		})
	}
}

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30015))})
	wantDeployment, wantService := f.deployment(), f.service()

	// Edited: what is ours comes back, what another writer added stays.
	deployment := f.deployment()
	deployment.Spec.Replicas = new(int32(7))
	deployment.Spec.Template.Spec.Containers[0].Args = []string{"--", "Baa"}
	deployment.Spec.Template.Spec.Containers = append(deployment.Spec.Template.Spec.Containers,
		corev1.Container{Name: "sidecar", Image: "example.com/sidecar"})
	f.Expect(f.client.Update(f.ctx, deployment, client.FieldOwner("someone"))).To(Succeed())
	service := f.service()
	service.Spec.Ports[0].NodePort = 30016
	delete(service.Spec.Selector, labelInstance)
	f.Expect(f.client.Update(f.ctx, service, client.FieldOwner("someone"))).To(Succeed())

	f.reconcile("cow")
	deployment = f.deployment()
	f.Expect(*deployment.Spec.Replicas).To(Equal(int32(1)))
	f.Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--", "Moo"}))
	f.Expect(deployment.Spec.Template.Spec.Containers).To(ContainElement(HaveField("Name", "sidecar")))
	f.Expect(f.service().Spec).To(Equal(wantService.Spec))

	// Deleted: made again.
	f.Expect(f.client.Delete(f.ctx, deployment)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, f.service())).To(Succeed())
	f.Eventually(func(g Gomega) {
		f.reconcile("cow")
		g.Expect(f.deployment().Spec).To(Equal(wantDeployment.Spec))
		g.Expect(f.service().Spec.Ports).To(Equal(wantService.Spec.Ports))
	}).WithTimeout(longestPortRetry).Should(Succeed())
}

func TestImageNotPulledIsOneStatusWrite(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Image: "example.com/no-such-image"})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "cow-1", Namespace: f.namespace, Labels: dependentLabels(f.get("cow"))},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: containerName, Image: "example.com/no-such-image"}}},
	}
	f.Expect(f.client.Create(f.ctx, pod)).To(Succeed())

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
		f.Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())
		f.reconcile("cow")
		lolcow := f.get("cow")
		ready := f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonImageNotPulled)
		f.Expect(ready.Message).To(ContainSubstring("i/o timeout"), "what the kubelet said, time %d", i)
		versions = append(versions, lolcow.ResourceVersion)
	}
	f.Expect(versions).To(HaveEach(versions[0]), "the kubelet's texts alternate; the status does not")
	f.Expect(f.recorded()).To(ConsistOf(HavePrefix("Warning ImageNotPulled")))
}

func TestApplyFailedCarriesTheServersText(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-deployments", Namespace: f.namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}},
	}
	f.Expect(f.client.Create(f.ctx, quota)).To(Succeed())
	// The part of Kubernetes' quota controller.
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	f.Expect(f.client.Status().Update(f.ctx, quota)).To(Succeed())
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())

	f.Eventually(func(g Gomega) {
		f.clock.Step(time.Minute)
		_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
		g.Expect(err).To(MatchError(ContainSubstring("exceeded quota: no-deployments")), "the queue tries again, ever more slowly")
	}).Should(Succeed())
	ready := f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	f.Expect(ready.Message).To(ContainSubstring("exceeded quota: no-deployments"))

	f.Expect(f.client.Delete(f.ctx, quota)).To(Succeed())
	f.Eventually(func(g Gomega) {
		f.clock.Step(time.Minute)
		_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
		g.Expect(err).NotTo(HaveOccurred())
	}).WithTimeout(settleTimeout).Should(Succeed())
	f.rollOut("cow")
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionTrue, v1alpha1.ReasonServing)
}

// The garbage collector's work in a namespace that is being deleted must not look like drift to repair.
func TestNamespaceBeingDeletedIsNotAFailure(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{})
	before := f.get("cow")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	f.Expect(f.client.Delete(f.ctx, namespace)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, f.service())).To(Succeed())

	f.Expect(f.reconcile("cow").RequeueAfter).To(BeZero())
	f.Expect(readyOf(f.get("cow"))).To(Equal(readyOf(before)))
	f.Expect(f.recorded()).To(BeEmpty())
}

func otherDeploymentSpec() appsv1.DeploymentSpec {
	labels := map[string]string{"app": "other"}
	return appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "example.com/other"}}},
		},
	}
}
