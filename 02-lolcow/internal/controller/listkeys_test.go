package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// portEdits are what another writer may do to our port of a Service. Number and protocol are its key: with another key
// it is another port, and ours was added beside it, which the API server rejects. It responds to two ports of one name
// with 422, and to two ports of one node port with 500.
var portEdits = map[string]struct {
	port int32
	edit func(ports []corev1.ServicePort) []corev1.ServicePort
	// keepsNodePort: the pods are served at the node port that they had, also where the spec names none.
	keepsNodePort bool
}{
	"number": {30040, func(ports []corev1.ServicePort) []corev1.ServicePort {
		ports[0].Port = 81
		return ports
	}, true},
	"protocol": {30041, func(ports []corev1.ServicePort) []corev1.ServicePort {
		ports[0].Protocol = corev1.ProtocolUDP
		return ports
	}, true},
	"name": {30042, func(ports []corev1.ServicePort) []corev1.ServicePort {
		ports[0].Name = "web"
		return ports
	}, true},
	"number and name": {30043, func(ports []corev1.ServicePort) []corev1.ServicePort {
		ports[0].Port, ports[0].Name = 81, "web"
		return ports
	}, false},
	"number, and another port has ours": {30044, func(ports []corev1.ServicePort) []corev1.ServicePort {
		ports[0].Port = 81
		return append(ports, corev1.ServicePort{Name: "web", Port: servicePort, Protocol: corev1.ProtocolTCP})
	}, false},
}

func TestEditOfTheServicesPortIsCorrected(t *testing.T) {
	t.Parallel()
	for name, test := range portEdits {
		for state, port := range map[string]*int32{"a port in the spec": new(test.port), "none": nil} {
			t.Run(name+"/"+state, func(t *testing.T) {
				t.Parallel()
				f := newTestEnv(t)
				f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: port})
				f.rollOut("cow")
				f.reconcile("cow")
				before := f.get("cow").Status.Port

				metrics := corev1.ServicePort{Name: "metrics", Port: 9000, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(9000)}
				service := f.service()
				service.Spec.Ports = append(test.edit(service.Spec.Ports), metrics)
				f.Expect(f.client.Update(f.ctx, service)).To(Succeed())
				f.reconcile("cow")

				lolcow := f.get("cow")
				f.expectReady(lolcow, metav1.ConditionTrue, v1alpha1.ReasonServing)
				if port != nil || test.keepsNodePort {
					f.Expect(lolcow.Status.Port).To(Equal(before))
				}
				ports := map[string]int32{}
				for _, one := range f.service().Spec.Ports {
					ports[one.Name] = one.Port
				}
				f.Expect(ports).To(And(HaveKeyWithValue(portName, int32(servicePort)), HaveKeyWithValue("metrics", int32(9000))),
					"ours is as desired, and what another writer added stays")

				version := f.service().ResourceVersion
				f.reconcile("cow")
				f.Expect(f.service().ResourceVersion).To(Equal(version), "nothing is written in steady state")
			})
		}
	}
}

// One number may be a node port for TCP and for UDP at once, as for HTTP/3 beside HTTP: the one is not in the way of the
// other.
func TestPortOfAnotherProtocolAtOurNodePortStays(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	const port = 30050
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(port))})
	service := f.service()
	service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
		Name: "http3", Port: servicePort, Protocol: corev1.ProtocolUDP, NodePort: port, TargetPort: intstr.FromInt32(8443),
	})
	service.Spec.Selector["edited"] = "yes"
	f.Expect(f.client.Update(f.ctx, service)).To(Succeed())
	f.reconcile("cow")

	f.Expect(f.service().Spec.Selector).NotTo(HaveKey("edited"))
	f.Expect(f.service().Spec.Ports).To(ConsistOf(
		And(HaveField("Name", portName), HaveField("Protocol", corev1.ProtocolTCP), HaveField("NodePort", int32(port))),
		And(HaveField("Name", "http3"), HaveField("Protocol", corev1.ProtocolUDP), HaveField("NodePort", int32(port)))))
}

func TestEditOfTheContainersPortIsCorrected(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	deployment := f.deployment()
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Ports[0].ContainerPort = 8081
	container.Ports = append(container.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: 9000})
	f.Expect(f.client.Update(f.ctx, deployment)).To(Succeed())
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	f.Expect(f.deployment().Spec.Template.Spec.Containers[0].Ports).To(ConsistOf(
		corev1.ContainerPort{Name: portName, ContainerPort: containerPort, Protocol: corev1.ProtocolTCP},
		corev1.ContainerPort{Name: "metrics", ContainerPort: 9000, Protocol: corev1.ProtocolTCP},
	))
}

// A container is known by its name: a renamed one cannot be distinguished from one that a service mesh injects, and stays.
func TestRenamedContainerStaysBesideOurs(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	deployment := f.deployment()
	deployment.Spec.Template.Spec.Containers[0].Name = "renamed"
	f.Expect(f.client.Update(f.ctx, deployment)).To(Succeed())
	f.reconcile("cow")
	f.Expect(f.deployment().Spec.Template.Spec.Containers).To(ConsistOf(HaveField("Name", containerName), HaveField("Name", "renamed")))
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}

// Without managedFields the API server notes at the next apply that all fields belong to "before-first-apply", and an
// apply does not remove what is owned by another manager.
func TestClearedManagedFieldsAreNoObstacle(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30045))})
	clearManagedFields := func() {
		for _, object := range []client.Object{f.deployment(), f.service()} {
			object.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
			f.Expect(f.client.Update(f.ctx, object)).To(Succeed())
		}
	}
	clearManagedFields()
	f.reconcile("cow")
	f.change(func(spec *v1alpha1.LolcowSpec) { spec.Greeting, spec.Port = "", new(int32(30046)) })
	f.Expect(f.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--"}))
	f.Expect(f.service().Spec.Ports).To(HaveLen(1))
	f.Expect(f.service().Spec.Ports[0].NodePort).To(Equal(int32(30046)))

	clearManagedFields()
	service := f.service()
	service.Spec.Ports[0].Port = 81
	f.Expect(f.client.Update(f.ctx, service)).To(Succeed())
	f.reconcile("cow")
	f.Expect(f.service().Spec.Ports).To(HaveLen(1))
	f.Expect(f.service().Spec.Ports[0].Port).To(Equal(int32(servicePort)))
}

// A Service keeps its port until it gets the new one, so two Lolcows that exchange theirs wait for each other.
func TestExchangedPortsWaitForAThird(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	const first, second, third = 30047, 30048, 30049
	f.create("cow", v1alpha1.LolcowSpec{Port: new(int32(first))})
	f.create("calf", v1alpha1.LolcowSpec{Port: new(int32(second))})
	set := func(name string, port int32) *v1alpha1.Lolcow {
		lolcow := f.get(name)
		lolcow.Spec.Port = new(port)
		f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
		f.reconcile(name)
		return f.get(name)
	}
	set("cow", second)
	f.expectReady(set("calf", first), metav1.ConditionFalse, v1alpha1.ReasonPortConflict)
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonPortConflict)
	f.Expect(f.get("cow").Status.Port).To(Equal(int32(first)), "it is served where it was")

	f.Expect(set("cow", third).Status.Port).To(Equal(int32(third)))
	takes := func(name string, port int32) {
		f.Eventually(func() int32 {
			f.reconcile(name)
			return f.get(name).Status.Port
		}).WithTimeout(settleTimeout).Should(Equal(port))
	}
	takes("calf", first)
	set("cow", second)
	takes("cow", second)
}

// Another writer's field excludes one of ours, and an apply removes no field of another writer: the API server rejects both
// together. The operator says so, and its next try succeeds when that field is gone.
func TestFieldThatExcludesOursIsReported(t *testing.T) {
	t.Parallel()
	tcp := &corev1.TCPSocketAction{Port: intstr.FromInt32(containerPort)}
	for name, edit := range map[string]func(pod *corev1.PodSpec){
		"a probe of another kind": func(pod *corev1.PodSpec) {
			pod.Containers[0].LivenessProbe.ProbeHandler = corev1.ProbeHandler{TCPSocket: tcp}
		},
		"another seccomp profile": func(pod *corev1.PodSpec) {
			pod.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("mine.json")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTestEnv(t)
			f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
			deployment := f.deployment()
			before := deployment.Spec.Template.Spec.DeepCopy()
			edit(&deployment.Spec.Template.Spec)
			f.Expect(f.client.Update(f.ctx, deployment)).To(Succeed())
			_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
			f.Expect(err).To(HaveOccurred(), "it is tried again")
			f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)

			deployment = f.deployment()
			deployment.Spec.Template.Spec = *before
			f.Expect(f.client.Update(f.ctx, deployment)).To(Succeed())
			f.reconcile("cow")
			f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		})
	}
}
