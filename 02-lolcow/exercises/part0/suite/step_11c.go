package suite

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Ports of the steps: below 30086, because where a Service names none the API server prefers to choose among those above.
const (
	firstPort    = 30070
	secondPort   = 30071
	occupiedPort = 30072
)

// service are the behaviours of step 11c.
func (s *suite) service() {
	s.reconciles("a Service of the type NodePort serves the port of the spec", func(e *env) {
		e.create("cow", fields{"greeting": "Moo", "port": int64(firstPort)})
		e.settle("cow")
		e.expectPort(firstPort)
		if service := e.service(); service.Spec.Type != corev1.ServiceTypeNodePort {
			e.Errorf("the type of the Service is %s", service.Spec.Type)
		}
	})
	s.reconciles("the Service selects the pods of its Lolcow, and of no other", (*env).selects)
	s.reconciles("another port is a change of the same Service, and the old port is free again", func(e *env) {
		e.create("cow", fields{"greeting": "Moo", "port": int64(firstPort)})
		e.settle("cow")
		before := e.service()
		e.change("cow", fields{"port": int64(secondPort)})
		e.settle("cow")
		e.expectPort(secondPort)
		if e.service().UID != before.UID {
			e.Errorf("the Service was deleted and created anew: its cluster IP is another one")
		}
		e.Eventually(patience, func() string {
			if err := e.client.Create(e.Context(), e.otherService(firstPort)); err != nil {
				return "the old port is not free: " + e.neutral(err.Error())
			}
			return ""
		})
	})
	s.reconciles("without a port in the spec, the Service keeps the port that the API server has chosen", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		before := e.service().Spec.Ports
		if len(before) == 0 || before[0].NodePort == 0 {
			e.Fatalf("the Service has no node port")
		}
		e.quiet()
		e.change("cow", fields{"greeting": "Baa"})
		e.settle("cow")
		if after := e.service().Spec.Ports; len(after) != 1 || after[0].NodePort != before[0].NodePort {
			e.Errorf("another greeting has changed the node port")
		}
	})
	s.reconciles("with a port in the spec, a reconciliation writes nothing if nothing has changed", func(e *env) {
		e.create("cow", fields{"greeting": "Moo", "port": int64(firstPort)})
		e.settle("cow")
		e.quiet()
	})
}

// otherService is one that is not owned by a Lolcow.
func (e *env) otherService(port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: e.namespace},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}},
		},
	}
}

// expectPort asserts the one node port of the one Service.
func (e *env) expectPort(port int32) {
	e.Helper()
	ports := e.service().Spec.Ports
	if len(ports) != 1 {
		e.Fatalf("the Service has %d ports; expected 1", len(ports))
	}
	if ports[0].NodePort != port {
		e.Fatalf("the node port of the Service is not that of the spec, %d", port)
	}
}

// containerPort is the one at which the page is served in a pod.
const containerPort = 8080

// expectTarget asserts that the Service's port leads there, by its number or by a name that a container gives to it.
func (e *env) expectTarget(service *corev1.Service, pod corev1.PodSpec) {
	e.Helper()
	target := service.Spec.Ports[0].TargetPort
	for _, container := range pod.Containers {
		for _, port := range container.Ports {
			if port.ContainerPort == containerPort && target == intstr.FromString(port.Name) {
				return
			}
		}
	}
	if target != intstr.FromInt32(containerPort) {
		e.Errorf("the targetPort of the Service is %s, which is not the port %d of a container", target.String(), containerPort)
	}
}

// selects compares the selector with the labels of the pods of two Lolcows.
func (e *env) selects() {
	e.create("cow", fields{"greeting": "Moo, says the first", "port": int64(firstPort)})
	e.settle("cow")
	service := e.service()
	e.create("calf", fields{"greeting": "Baa, says the second"})
	e.settle("calf")
	cow, calf := e.deployment("Moo, says the first"), e.deployment("Baa, says the second")
	if len(service.Spec.Selector) == 0 {
		e.Fatalf("the Service has no selector")
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	if !selector.Matches(labels.Set(cow.Spec.Template.Labels)) {
		e.Errorf("the pods of the Deployment do not have the labels of the Service's selector")
	}
	if selector.Matches(labels.Set(calf.Spec.Template.Labels)) {
		e.Errorf("the selector of one Lolcow's Service matches the pods of another Lolcow")
	}
	e.expectTarget(service, cow.Spec.Template.Spec)
}
