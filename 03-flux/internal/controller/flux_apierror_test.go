package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// manyTries is how often a test repeats a failing request. The status is written once for all of them.
const manyTries = 20

// webhookDown registers a fail-closed admission webhook for FluxSetups of the test's namespace at an address without a
// listener, and waits until the API server calls it.
func (w *fluxTestEnv) webhookDown(t *testing.T) {
	t.Helper()
	none := admissionv1.SideEffectClassNone
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "down.example.com",
			ClientConfig:            admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			FailurePolicy:           new(admissionv1.Fail),
			SideEffects:             &none,
			TimeoutSeconds:          new(int32(1)),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"fluxsetups"},
				},
			}},
		}},
	}
	w.Expect(w.client.Create(w.ctx, webhook)).To(Succeed())
	t.Cleanup(func() { _ = w.client.Delete(context.WithoutCancel(w.ctx), webhook) })
	probe := firstSetup(fluxWith(jobSpec()))
	probe.Name, probe.Namespace, probe.OwnerReferences = "probe", w.namespace, nil
	w.Eventually(func() error {
		return w.client.Create(w.ctx, probe.DeepCopy(), client.DryRunAll)
	}, watchTimeout).Should(MatchError(apierrors.IsInternalError, "InternalError"))
}

// expectAPIError asserts that each retry fails, and that only the first one writes the status, with a condition of the
// current generation.
func (w *fluxTestEnv) expectAPIError() metav1.Condition {
	w.recorded()
	writes := w.statusWrites
	for range manyTries {
		_, err := w.tryReconcile()
		w.Expect(err).To(HaveOccurred(), "it is retried")
	}
	w.Expect(w.statusWrites).To(Equal(writes + 1))
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning APIError")))
	return w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
}

func TestWebhookDownWhenTheFluxSetupIsCreated(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.webhookDown(t)
	w.Expect(w.client.Create(w.ctx, &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(),
	})).To(Succeed())
	ready := w.expectAPIError()
	w.Expect(ready.Message).To(And(ContainSubstring("down.example.com"), Not(ContainSubstring("127.0.0.1"))))
	w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
	w.Expect(w.flux().Status.SetupRef).To(BeNil())

	w.Expect(w.client.Delete(w.ctx, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
	w.Eventually(func() error {
		w.clock.Step(time.Minute)
		_, err := w.tryReconcile()
		return err
	}, watchTimeout).Should(Succeed())
	w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonStarting)
}

// Running pods are not affected, and their conditions stay.
func TestWebhookDownWhenTheFluxSetupIsChanged(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withRestarts(1))
	w.webhookDown(t)
	for _, change := range []func(*v1alpha1.FluxSpec){
		func(s *v1alpha1.FluxSpec) { s.StartupTimeoutSeconds = 7 },
		isSuspended,
	} {
		flux := w.flux()
		change(&flux.Spec)
		w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
		writes := w.statusWrites
		for range manyTries {
			_, err := w.tryReconcile()
			w.Expect(err).To(HaveOccurred(), "it is retried")
		}
		w.Expect(w.statusWrites).To(Equal(writes + 1))
		w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
		w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	}
	w.expect(w.flux(), v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	w.Expect(w.setup().Spec.Suspend).To(BeFalse())
}

// An error whose text differs each time is written once, whichever request of a reconciliation fails.
func TestTransientErrorIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*interceptor.Funcs, func() error){
		"apply": func(funcs *interceptor.Funcs, broken func() error) {
			funcs.Apply = func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				return broken()
			}
		},
		"read of the FluxSetup": func(funcs *interceptor.Funcs, broken func() error) {
			funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, ok := obj.(*v1alpha1.FluxSetup); ok {
					return broken()
				}
				return c.Get(ctx, key, obj, opts...)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			w.start()
			running := conditionOf(w.flux().Status.Conditions, v1alpha1.ConditionRunning)
			flux := w.flux()
			flux.Spec.StartupTimeoutSeconds = 7
			w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
			tries := 0
			var funcs interceptor.Funcs
			fail(&funcs, func() error {
				tries++
				return fmt.Errorf("Post \"https://10.0.0.1:6443/apis\": read tcp 10.0.0.7:%d->10.0.0.1:6443: i/o timeout", 40000+tries)
			})
			w.use(w.counting(funcs))
			ready := w.expectAPIError()
			w.Expect(ready.Message).To(And(ContainSubstring("i/o timeout"), Not(ContainSubstring("10.0.0"))))
			after := conditionOf(w.flux().Status.Conditions, v1alpha1.ConditionRunning)
			w.Expect(after.Status).To(Equal(running.Status))
			w.Expect(after.LastTransitionTime).To(Equal(running.LastTransitionTime))

			w.unfreezeCache()
			w.reconcile()
			w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
		})
	}
}

// The state in the cache was not confirmed by the API server, so the Flux does not end.
func TestUnconfirmedLossDoesNotEndTheFlux(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	w.Expect(w.client.Delete(w.ctx, w.setup())).To(Succeed())
	w.reconciler.apiReader = w.counting(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewTimeoutError("the API server is busy", 1)
		},
	})
	w.expectAPIError()
	w.Expect(ended(w.flux())).To(BeFalse())
	w.unfreezeCache()
	w.reconcile()
	w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonSetupLost)
}

// A Conflict means that the cache is stale. The status is not computed from it, unless the Conflict lasts.
func TestConflictWritesNoStatus(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	w.recorded()
	conflict := apierrors.NewConflict(v1alpha1.SchemeGroupVersion.WithResource("fluxsetups").GroupResource(), "job", context.Canceled)
	w.use(w.counting(interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return conflict
		},
	}))
	flux := w.flux()
	flux.Spec.StartupTimeoutSeconds = 7
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	writes := w.statusWrites
	_, err := w.tryReconcile()
	w.Expect(err).To(MatchError(apierrors.IsConflict, "Conflict"))
	w.Expect(w.statusWrites).To(Equal(writes))
	w.Expect(w.recorded()).To(BeEmpty())
	w.clock.Step(staleTimeout)
	w.expectAPIError()
}

// The dependents of an attempt that has ended cannot be deleted. The Flux reports that in a condition and one Event,
// while the next attempt waits and after the end.
func TestFluxReportsWhatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]int32{"a restart is left": 1, "it has ended": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			w.start(withRestarts(restarts))
			w.report(setCommandFailed)
			w.recorded()
			w.report(func(status *v1alpha1.FluxSetupStatus) {
				setSetupCondition(status, v1alpha1.ConditionConfigured, false, v1alpha1.ReasonApplyFailed, "a policy keeps Jobs")
			})
			w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
			w.Expect(w.recorded()).To(ConsistOf(ContainSubstring("a policy keeps Jobs")))
			w.expectSteadyState()
			w.report(func(status *v1alpha1.FluxSetupStatus) {
				setSetupCondition(status, v1alpha1.ConditionConfigured, false, v1alpha1.ReasonFinished, "the attempt has ended")
			})
			w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonFinished)
			w.Expect(w.recorded()).To(BeEmpty())
		})
	}
}
