package conformance

import (
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// rejectionScenarios are about an API server that rejects the Deployment, because of a quota of no Deployments.
var rejectionScenarios = []Scenario{
	{"reports a rejection with the API server's message, stops after the last retry, and tries again when the spec changes", func(s *scenarioRun) {
		quota := s.forbidDeployments()
		f := s.create("web", "web-server")
		ready := s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
		s.Expect(ready.Message).To(gomega.And(gomega.ContainSubstring("forbidden"), gomega.ContainSubstring("exceeded quota")))
		stalled := s.expectStalled(f)
		s.expectEvents(f, applyFailed, retriesExhausted)

		// There is no other try, although it would succeed now.
		s.delete(quota)
		s.expectAllowed()
		version := s.settled(f)
		s.always(func(g gomega.Gomega) { g.Expect(s.versionOf(g, f)).To(gomega.Equal(version)) })

		s.change(f, func(spec *v1alpha1.FooSpec) { spec.Replicas = new(int32(2)) })
		s.expectAvailable(f, 2)
		s.expectEvents(f, applyFailed, retriesExhausted, available)
		s.Expect(stalled.ObservedGeneration).To(gomega.Equal(f.Generation - 1))
	}},

	{"keeps the old Deployment while the new one is rejected", func(s *scenarioRun) {
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

	{"reports that an admission policy changes the Deployment, and stops after the last retry", func(s *scenarioRun) {
		defer s.changeDeployments(noReplicas, func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 0 })()
		f := s.create("web", "web-server")
		s.expectChanged(f)
		s.expectStalled(f)
		deployment := s.deployment("web-server")
		version := s.settled(deployment)
		s.always(func(g gomega.Gomega) { g.Expect(s.versionOf(g, deployment)).To(gomega.Equal(version)) })
		s.expectEvents(f, applyFailed, retriesExhausted)
	}},

	{"reports that an admission policy removes a field of the Deployment", func(s *scenarioRun) {
		defer s.changeDeployments(noManagedBy, func(d *appsv1.Deployment) bool { return d.Labels[foo.LabelManagedBy] == "" })()
		s.expectChanged(s.create("web", "web-server"))
	}},
}

// expectChanged waits until the Foo reports that admission changes its Deployment.
func (s *scenarioRun) expectChanged(f *v1alpha1.Foo) {
	ready := s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	s.Expect(ready.Message).To(gomega.Equal("an admission policy or webhook changes Deployment " + f.Spec.DeploymentName))
}

var (
	noReplicas = admissionv1.Mutation{
		PatchType:          admissionv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: "Object{spec: Object.spec{replicas: 0}}"},
	}
	noManagedBy = admissionv1.Mutation{
		PatchType: admissionv1.PatchTypeJSONPatch,
		JSONPatch: &admissionv1.JSONPatch{Expression: `[JSONPatch{op: "remove", path: "/metadata/labels/app.kubernetes.io~1managed-by"}]`},
	}
)

// changeDeployments makes the API server change all Deployments in the namespace, and waits until it does. The function that it
// returns ends that.
func (s *scenarioRun) changeDeployments(mutation admissionv1.Mutation, isChanged func(*appsv1.Deployment) bool) (end func()) {
	rule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
	}
	meta := metav1.ObjectMeta{Name: s.Namespace}
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.Namespace}},
			ResourceRules:     []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
		},
		Mutations:          []admissionv1.Mutation{mutation},
		ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
	}}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: s.Namespace},
	}
	s.Expect(s.Client.Create(s.ctx, policy)).To(gomega.Succeed())
	s.Expect(s.Client.Create(s.ctx, binding)).To(gomega.Succeed())
	s.soon(func(g gomega.Gomega) {
		tried := s.notOwned("dry-run", func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Labels = new(int32(1)), map[string]string{foo.LabelManagedBy: foo.ManagedBy}
		})
		g.Expect(s.Client.Create(s.ctx, tried, client.DryRunAll)).To(gomega.Succeed())
		g.Expect(isChanged(tried)).To(gomega.BeTrue())
	})
	return func() {
		s.Expect(s.Client.Delete(s.ctx, binding)).To(gomega.Succeed())
		s.Expect(s.Client.Delete(s.ctx, policy)).To(gomega.Succeed())
	}
}

// expectStalled waits until the Foo is Stalled.
func (s *scenarioRun) expectStalled(f *v1alpha1.Foo) metav1.Condition {
	var stalled metav1.Condition
	s.Eventually(s.ctx, func(g gomega.Gomega) {
		s.get(g, f)
		stalled = ptr.Deref(apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled), metav1.Condition{})
		g.Expect(stalled.Status).To(gomega.Equal(metav1.ConditionTrue))
	}).WithTimeout(s.Soon + s.StalledWithin).WithPolling(s.Interval).Should(gomega.Succeed())
	s.Expect(stalled.Reason).To(gomega.Equal(v1alpha1.ReasonRetriesExhausted))
	s.Expect(stalled.ObservedGeneration).To(gomega.Equal(f.Generation))
	s.expect(f, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	return stalled
}

// forbidDeployments creates a quota that forbids another Deployment in the namespace, and waits until it is effective.
func (s *scenarioRun) forbidDeployments() *corev1.ResourceQuota {
	none := corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: none},
	}
	s.Expect(s.Client.Create(s.ctx, quota)).To(gomega.Succeed())
	if s.RollOut != nil { // there is no quota controller either
		quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
		s.Expect(s.Client.Status().Update(s.ctx, quota)).To(gomega.Succeed())
	}
	s.soon(func(g gomega.Gomega) { g.Expect(apierrors.IsForbidden(s.tryDeployment())).To(gomega.BeTrue()) })
	return quota
}

// expectAllowed waits until Deployments are allowed again.
func (s *scenarioRun) expectAllowed() {
	s.soon(func(g gomega.Gomega) { g.Expect(s.tryDeployment()).To(gomega.Succeed()) })
}

// tryDeployment asks the API server whether it would accept a Deployment.
func (s *scenarioRun) tryDeployment() error {
	return s.Client.Create(s.ctx, s.notOwned("dry-run", nil), client.DryRunAll)
}
