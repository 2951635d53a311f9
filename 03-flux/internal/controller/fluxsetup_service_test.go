package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// Number and protocol are the key of a Service's port. With another key it counts as another port, and ours was added
// next to it: the API server rejected the two ports because of their name, and no attempt could start.
func TestEditOfTheServicesPortIsCorrected(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*corev1.ServicePort){
		"number":   func(port *corev1.ServicePort) { port.Port++ },
		"protocol": func(port *corev1.ServicePort) { port.Protocol = corev1.ProtocolUDP },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(2))
			b.running()
			service := fetch[corev1.Service](b)
			desired := service.Spec.Ports[0]
			edit(&service.Spec.Ports[0])
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "metrics", Port: 9000})
			b.Expect(b.client.Update(b.ctx, service)).To(Succeed())
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
			ports := fetch[corev1.Service](b).Spec.Ports
			b.Expect(ports).To(HaveLen(2), "what another writer added stays")
			b.Expect(ports).To(ContainElement(desired))
		})
	}
}

// Another client adds a port between the read of the Service and the correction: the list of ports is not replaced by one
// without it.
func TestPortsOfTheServiceAreReplacedOnlyAsTheyWereRead(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	service := fetch[corev1.Service](b)
	service.Spec.Ports[0].Port++
	b.Expect(b.client.Update(b.ctx, service)).To(Succeed())
	b.use(b.through(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "metrics", Port: 9000})
			b.Expect(c.Update(ctx, service)).To(Succeed())
			return c.Patch(ctx, object, patch, opts...)
		},
	}))
	_, err := b.try()
	b.Expect(isStale(err)).To(BeTrue(), "%v", err)
	b.Expect(fetch[corev1.Service](b).Spec.Ports).To(HaveLen(2))
}

// Another client changes the type of the Service to ExternalName: no rank would find another.
func TestTypeOfTheServiceIsCorrected(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	service := fetch[corev1.Service](b)
	ours := service.Spec.DeepCopy()
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "other.example.com", Ports: service.Spec.Ports, Selector: service.Spec.Selector, PublishNotReadyAddresses: true}
	b.Expect(b.client.Update(b.ctx, service)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	// externalName counts only for the type ExternalName.
	ours.ExternalName = "other.example.com"
	b.Expect(fetch[corev1.Service](b).Spec).To(BeComparableTo(*ours))
	version := fetch[corev1.Service](b).ResourceVersion
	b.reconcile()
	b.Expect(fetch[corev1.Service](b).ResourceVersion).To(Equal(version))
}
