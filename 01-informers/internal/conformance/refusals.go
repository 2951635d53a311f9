package conformance

import (
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// refusalScenarios are about an API server that will not have the Deployment. A quota of no Deployments
// makes it so, in any cluster.
var refusalScenarios = []scenario{
	{"reports a refusal in the API server's words, gives up, and tries again when the spec changes", func(s *story) {
		quota := s.forbidDeployments()
		f := s.create("web", "web-server")
		ready := s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
		s.Expect(ready.Message).To(gomega.And(gomega.ContainSubstring("forbidden"), gomega.ContainSubstring("exceeded quota")))
		stalled := s.expectStalled(f)
		s.expectEvents(f, applyFailed, retriesExhausted)

		// It has given up: that it would succeed now changes nothing.
		s.delete(quota)
		s.expectAllowed()
		version := s.settled(f)
		s.always(func(g gomega.Gomega) { g.Expect(s.versionOf(g, f)).To(gomega.Equal(version)) })

		s.change(f, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(2)) })
		s.expectAvailable(f, 2)
		s.expectEvents(f, applyFailed, retriesExhausted, available)
		s.Expect(stalled.ObservedGeneration).To(gomega.Equal(f.Generation - 1))
	}},

	{"leaves the old Deployment at work while the new one is refused", func(s *story) {
		f := s.createReady("web", "web-old")
		old := s.deployment("web-old")
		quota := s.forbidDeployments()
		s.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "web-new" })
		s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
		s.expectStalled(f)
		s.always(func(g gomega.Gomega) {
			s.versionOf(g, old)
			g.Expect(old.DeletionTimestamp.IsZero()).To(gomega.BeTrue())
		})

		s.delete(quota)
		s.expectAllowed()
		s.change(f, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "web-third" })
		s.expectAvailable(f, 1)
		s.expectGone(old)
	}},
}

// expectStalled waits until the operator has given up.
func (s *story) expectStalled(f *v1alpha1.Foo) metav1.Condition {
	var stalled metav1.Condition
	s.Eventually(s.ctx, func(g gomega.Gomega) {
		s.look(g, f)
		stalled = ptr.Deref(apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled), metav1.Condition{})
		g.Expect(stalled.Status).To(gomega.Equal(metav1.ConditionTrue))
	}).WithTimeout(s.Soon + s.StalledWithin).WithPolling(interval).Should(gomega.Succeed())
	s.Expect(stalled.Reason).To(gomega.Equal(v1alpha1.ReasonRetriesExhausted))
	s.Expect(stalled.ObservedGeneration).To(gomega.Equal(f.Generation))
	s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	return stalled
}

// forbidDeployments makes a quota that lets no further Deployment into the namespace, and waits until it is
// in force.
func (s *story) forbidDeployments() *corev1.ResourceQuota {
	none := corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: none},
	}
	s.Expect(s.Client.Create(s.ctx, quota)).To(gomega.Succeed())
	if s.RollOut != nil { // and nobody else plays the quota controller either
		quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
		s.Expect(s.Client.Status().Update(s.ctx, quota)).To(gomega.Succeed())
	}
	s.soon(func(g gomega.Gomega) { g.Expect(apierrors.IsForbidden(s.tryDeployment())).To(gomega.BeTrue()) })
	return quota
}

// expectAllowed waits until Deployments are let in again.
func (s *story) expectAllowed() {
	s.soon(func(g gomega.Gomega) { g.Expect(s.tryDeployment()).To(gomega.Succeed()) })
}

// tryDeployment asks the API server whether it would accept a Deployment.
func (s *story) tryDeployment() error {
	return s.Client.Create(s.ctx, s.foreign("dry-run", nil), client.DryRunAll)
}
