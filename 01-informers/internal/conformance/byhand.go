package conformance

import (
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// byHandScenarios play the Deployment controller as no real one would.
var byHandScenarios = []scenario{
	{"follows the Deployment's replicas when they become unavailable", func(s *story) {
		f := s.createReady("web", "web-server")
		deployment := s.deployment("web-server")
		deployment.Status.AvailableReplicas, deployment.Status.ReadyReplicas = 0, 0
		s.Expect(s.Client.Status().Update(s.ctx, deployment)).To(gomega.Succeed())
		s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		s.Expect(f.Status.AvailableReplicas).To(gomega.BeZero())
		s.rollOut("web-server")
		s.expect(f, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		s.expectEvents(f, available, available)
	}},

	{"works with the greatest number of replicas that the API allows", func(s *story) {
		f := s.foo("web", "web-server", new(int32(100)))
		s.Expect(s.Client.Create(s.ctx, f)).To(gomega.Succeed())
		s.expectAvailable(f, 100)
	}},
}
