package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// startPolicy has the API server change every Deployment of the namespace as a CEL expression says.
func (f *testEnv) startPolicy(expression string) (end func()) {
	rule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
	}
	meta := metav1.ObjectMeta{Name: f.namespace}
	all := []client.Object{
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.namespace}},
				ResourceRules:     []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
			},
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: expression},
			}},
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: f.namespace}},
	}
	for _, object := range all {
		f.Expect(f.client.Create(f.ctx, object)).To(Succeed())
	}
	return func() {
		for _, object := range all {
			f.Expect(f.client.Delete(f.ctx, object)).To(Succeed())
		}
	}
}

// What the API server has stored is not what was applied: to be Ready with it would be untrue. Each retry is a request
// that changes nothing, until the policy is gone.
func TestWhatAdmissionChangesIsReported(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Replicas: new(int32(2))})
	end := f.startPolicy(`Object{spec: Object.spec{replicas: 0}}`)
	reconcile := func() error {
		f.clock.Step(time.Minute)
		_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
		return err
	}
	// A policy counts a little after it was written.
	f.Eventually(func(g Gomega) {
		deployment := f.deployment()
		deployment.Spec.Replicas = new(int32(5))
		g.Expect(f.client.Update(f.ctx, deployment)).To(Succeed())
		g.Expect(*deployment.Spec.Replicas).To(BeZero())
	}).WithTimeout(settleTimeout).Should(Succeed())
	f.rollOut("cow")

	f.Expect(reconcile()).NotTo(Succeed(), "it is tried again")
	ready := f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	f.Expect(ready.Message).To(Equal("an admission policy or webhook changes spec.replicas of Deployment cow"))
	before, lolcow := f.deployment(), f.get("cow")
	f.Expect(reconcile()).NotTo(Succeed())
	f.Expect(f.deployment().ResourceVersion).To(Equal(before.ResourceVersion))
	f.Expect(f.get("cow").ResourceVersion).To(Equal(lolcow.ResourceVersion))

	end()
	f.Eventually(reconcile).WithTimeout(settleTimeout).Should(Succeed())
	f.Expect(*f.deployment().Spec.Replicas).To(BeEquivalentTo(2))
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}

// What a policy adds is not ours, as an injected sidecar is not.
func TestWhatAdmissionAddsIsNoFailure(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.startPolicy(`Object{metadata: Object.metadata{labels: Object.metadata.labels{team: "herd"}}}`)
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	f.Eventually(func(g Gomega) {
		f.Expect(client.IgnoreNotFound(f.client.Delete(f.ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: f.namespace}}))).To(Succeed())
		f.reconcile("cow")
		g.Expect(f.deployment().Labels).To(HaveKeyWithValue("team", "herd"))
	}).WithTimeout(settleTimeout).Should(Succeed())
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}
