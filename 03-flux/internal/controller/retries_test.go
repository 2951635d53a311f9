package controller

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// mutate makes the API server change every object of one kind in the test's namespace by a CEL expression.
func (w *testEnv) mutate(t *testing.T, group, resource, expression string) (end func()) {
	t.Helper()
	rule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}
	meta := metav1.ObjectMeta{Name: w.namespace}
	all := []client.Object{
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
				ResourceRules:     []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
			},
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: expression},
			}},
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: w.namespace}},
	}
	for _, object := range all {
		w.Expect(w.client.Create(w.ctx, object)).To(Succeed())
	}
	end = func() {
		for _, object := range all {
			_ = w.client.Delete(context.WithoutCancel(w.ctx), object)
		}
	}
	t.Cleanup(end)
	return end
}

// stamp is an annotation whose value differs at each write.
const stamp = `metadata: Object.metadata{annotations: {"stamp": oldObject == null ? "" : string(oldObject.metadata.resourceVersion)}}`

// A policy changes one of our fields, and adds a stamp that differs each time: each write was a change, whose event
// triggered the next reconciliation at once.
func TestChangeByAdmissionBacksOff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		group, resource, change, message string
		live                             func(*setupTestEnv) client.Object
	}{
		"of the FluxSetup": {v1alpha1.SchemeGroupVersion.Group, "fluxsetups", "startupTimeoutSeconds: 77", "spec of FluxSetup bees",
			func(b *setupTestEnv) client.Object { return b.setup() }},
		"of the Service": {"", "services", "publishNotReadyAddresses: false", "spec.publishNotReadyAddresses of Service bees",
			func(b *setupTestEnv) client.Object { return fetch[corev1.Service](b) }},
		"of the Job": {"batch", "jobs", "activeDeadlineSeconds: 77", "spec.activeDeadlineSeconds of Job bees-1",
			func(b *setupTestEnv) client.Object { return b.job() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newEmptySetupTestEnv(t)
			fluxUser, setupUser := manageBoth(b)
			b.makeFlux(fluxOf(1))
			waitForReason(b, v1alpha1.ConditionSetupReady, v1alpha1.ReasonConfigured)
			end := b.mutate(t, test.group, test.resource, `Object{`+stamp+`, spec: Object.spec{`+test.change+`}}`)
			// A policy takes effect a little after its creation.
			b.Eventually(func(g Gomega) {
				live := test.live(b)
				metav1.SetMetaDataAnnotation(metaOf(live), "stamp", "none")
				g.Expect(b.client.Update(b.ctx, live)).To(Succeed())
				g.Expect(live.GetAnnotations()["stamp"]).NotTo(Equal("none"))
			}, watchTimeout).Should(Succeed())

			waitForReason(b, v1alpha1.ConditionSetupReady, v1alpha1.ReasonApplyFailed)
			ready := conditionOf(fetch[v1alpha1.Flux](b).Status.Conditions, v1alpha1.ConditionSetupReady)
			b.Expect(ready.Message).To(ContainSubstring("an admission policy or webhook changes " + test.message))
			writes := func() int {
				what := "patch " + test.resource + "/"
				return b.writes(fluxUser)[what] + b.writes(setupUser)[what]
			}
			// After 5 ms, and then with exponential back-off.
			b.Consistently(writes, 4*time.Second, 100*time.Millisecond).Should(BeNumerically("<=", 16))
			t.Logf("%d writes", writes())
			b.Eventually(writes, watchTimeout).Should(BeNumerically(">=", 5), "it is retried")

			end()
			waitForReason(b, v1alpha1.ConditionSetupReady, v1alpha1.ReasonConfigured)
		})
	}
}

func metaOf(object client.Object) *metav1.ObjectMeta {
	switch object := object.(type) {
	case *v1alpha1.FluxSetup:
		return &object.ObjectMeta
	case *corev1.Service:
		return &object.ObjectMeta
	}
	return &object.(*batchv1.Job).ObjectMeta
}

// A webhook rejects the Service for a different reason each time: each reason was a status write, whose event triggered
// a reconciliation at once. A change of the spec is retried at once.
func TestRejectionForOtherReasonsBacksOff(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	tries := 0
	b.reconciler = b.newReconciler(failingServices(b, func() error {
		if tries++; tries%2 == 0 {
			return apierrors.NewInternalError(fmt.Errorf("try %d", tries))
		}
		return apierrors.NewForbidden(corev1.Resource("services"), "bees", fmt.Errorf("try %d", tries))
	}))
	pause := 5 * time.Millisecond
	for due := 1; due <= 5; due++ {
		version := ""
		for range 3 {
			_, err := b.try()
			b.Expect(err).To(HaveOccurred())
			b.Expect(tries).To(Equal(due))
			b.Expect(cmp.Or(version, b.setup().ResourceVersion)).To(Equal(b.setup().ResourceVersion))
			version = b.setup().ResourceVersion
		}
		b.clock.Step(pause)
		pause *= 2
	}
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.ActiveDeadlineSeconds = new(int64(600)) })
	for range 2 {
		_, err := b.try()
		b.Expect(err).To(HaveOccurred())
	}
	b.Expect(tries).To(Equal(6))
}

// A write that hangs fails at the end of its time, and the time to the next try counts from then.
func TestTriesArePacedFromTheFailure(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	clock := testclock.NewFakeClock(zero)
	r := newRetries(clock, newRateLimiter(), fluxRetryable)
	tries := 0
	for range 3 {
		err := r.try(t.Context(), ctrl.Request{}, &v1alpha1.Flux{}, func(ctx context.Context) error {
			if err := gateError(ctx); err != nil {
				return err
			}
			tries++
			clock.Step(45 * time.Second)
			return context.DeadlineExceeded
		})
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
	}
	g.Expect(tries).To(Equal(1))
}
