package conformance

import (
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// byHandScenarios are for an Env with RollOut: they simulate what a real Deployment controller does not do, or not within the
// time of a test.
var byHandScenarios = []Scenario{
	{"reports why a Deployment has no pods, with the message of its condition", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		s.change(f, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(2)) })
		s.expectDesired(f, 2)
		s.setConditions("web-server", condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "exceeded quota"))
		s.Expect(s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonPodsNotCreated).Message).To(gomega.Equal("exceeded quota"))
		s.Expect(f.Status.AvailableReplicas).To(gomega.BeEquivalentTo(1))
		s.rollOut("web-server")
		s.expect(f, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		s.expectEvents(f, available, podsNotCreated, available)
	}},

	{"reports a Deployment that makes no progress", func(s *scenarioRun) {
		f := s.create("web", "web-server")
		s.expectDesired(f, 1)
		s.setConditions("web-server", condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "has timed out progressing"))
		s.Expect(s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonProgressDeadlineExceeded).Message).
			To(gomega.Equal("has timed out progressing"))
		s.rollOut("web-server")
		s.expect(f, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		s.expectEvents(f, noProgress, available)
	}},

	{"follows the Deployment's replicas when they become unavailable", func(s *scenarioRun) {
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
}

// setConditions sets the conditions of a Deployment, for its present generation.
func (s *scenarioRun) setConditions(name string, conditions ...appsv1.DeploymentCondition) {
	deployment := s.deployment(name)
	deployment.Status.ObservedGeneration = deployment.Generation
	deployment.Status.Conditions = conditions
	s.Expect(s.Client.Status().Update(s.ctx, deployment)).To(gomega.Succeed())
}

func condition(conditionType appsv1.DeploymentConditionType, status corev1.ConditionStatus, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: conditionType, Status: status, Message: message}
}
