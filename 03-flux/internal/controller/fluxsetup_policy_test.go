package controller

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
)

// forbid makes the API server reject updates of Jobs in the test's namespace for which expression is false. The reason
// is the one of a ValidatingAdmissionPolicy that names none: Invalid. It returns when the API server rejects probe, for
// which expression must be false. The returned function removes the policy.
func (b *setupTestEnv) forbid(expression string, probe client.Object) (permit func()) {
	b.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"batch"}, APIVersions: []string{"v1"}, Resources: []string{"jobs"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: expression, Message: "a policy keeps Jobs as they are"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        b.namespace,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": b.namespace}},
			},
		},
	}
	permit = func() {
		for _, object := range []client.Object{binding, policy} {
			_ = b.client.Delete(context.WithoutCancel(b.ctx), object)
		}
	}
	b.t.Cleanup(permit)
	for _, object := range []client.Object{policy, binding} {
		b.Expect(b.client.Create(b.ctx, object)).To(Succeed())
	}
	b.Eventually(func() error {
		return b.client.Update(b.ctx, probe.DeepCopyObject().(client.Object), client.DryRunAll)
	}, watchTimeout).Should(MatchError(apierrors.IsInvalid, "Invalid"))
	return permit
}

// A policy rejects the start of the Job. That is not a stale cache: the status reports it, the time to start counts,
// and the start is retried until it succeeds.
func TestRejectedStartIsReported(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	probe := desiredJob(b.setup())
	probe.Name = "probe"
	b.Expect(b.client.Create(b.ctx, probe)).To(Succeed())
	probe.Spec.Suspend = new(false)
	permit := b.forbid("object.spec.suspend == true", probe)
	b.Expect(b.client.Delete(b.ctx, probe, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())

	_, err := b.try()
	b.Expect(err).To(HaveOccurred(), "it is retried")
	b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("a policy keeps Jobs"))

	permit()
	b.Eventually(func() error {
		b.clock.Step(time.Second)
		_, err := b.try()
		return err
	}, watchTimeout).Should(Succeed())
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// An admission policy changes the launch that is recorded: the Job of which nothing is recorded is not started.
func TestLaunchThatIsStoredOtherwiseStartsNothing(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			sent, err := json.Marshal(object)
			b.Expect(err).NotTo(HaveOccurred())
			var changed unstructured.Unstructured
			b.Expect(json.Unmarshal(sent, &changed.Object)).To(Succeed())
			if changed.GetKind() != "FluxSetup" {
				return c.Apply(ctx, object, opts...)
			}
			unstructured.RemoveNestedField(changed.Object, "spec", "launch", "jobUID")
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&changed), opts...); err != nil {
				return err
			}
			stored, err := json.Marshal(changed.Object)
			b.Expect(err).NotTo(HaveOccurred())
			return json.Unmarshal(stored, object)
		},
	}))
	_, err := b.try()
	b.Expect(err).To(HaveOccurred(), "it is retried")
	b.Expect(b.setup().Spec.Launch.JobUID).To(BeEmpty())
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()), "it was started")
	b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("spec.launch of FluxSetup bees"))

	b.forget()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// An admission policy changes the Secret that is created: brokers with it would not start, or not know each other.
func TestSecretThatIsStoredOtherwiseIsNotUsed(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if secret, ok := object.(*corev1.Secret); ok {
				secret.Data[broker.CertificateFile] = []byte("theirs")
			}
			return c.Create(ctx, object, opts...)
		},
	}))
	_, err := b.try()
	b.Expect(err).To(HaveOccurred(), "it is retried")
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()), "it was started")
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
}
