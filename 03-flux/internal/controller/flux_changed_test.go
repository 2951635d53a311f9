package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// Another client suspends the FluxSetup, or raises its attempt, without a suspension, restart or resume of the Flux:
// the Flux ends, and its command is not run again, even if restarts are left.
func TestFluxSetupThatAnotherClientChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1alpha1.FluxSetupSpec){
		"suspended": func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend = true },
		"raised":    func(spec *v1alpha1.FluxSetupSpec) { spec.Attempt = 2 },
	} {
		for kind, restarts := range map[string]int32{"no restart": 0, "a restart left": 1} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				w := newFluxTestEnv(t)
				w.start(withRestarts(restarts))
				setup := w.setup()
				change(&setup.Spec)
				w.Expect(w.client.Update(w.ctx, setup, client.FieldOwner("another"))).To(Succeed())
				attempt := setup.Spec.Attempt
				if name == "raised" {
					w.reportOnly(setFailed(v1alpha1.ReasonSetupChanged, "changed", nil))
				}
				w.reconcile()
				w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonSetupChanged)
				w.Expect(w.setup().Spec.Attempt).To(Equal(attempt))
				w.expectSteadyState()
			})
		}
	}
}

// The operator crashes between a suspension and its report, and the Flux is resumed: that is a normal resume.
func TestResumeAfterASuspensionThatWasNotReported(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	before := w.flux().Status
	w.change(isSuspended)
	flux := w.flux()
	flux.Status = before
	w.Expect(w.client.Status().Update(w.ctx, flux)).To(Succeed())
	w.reportOnly(setSuspending)
	w.change(isResumed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
	w.Expect(ended(w.flux())).To(BeFalse())
}

// Another client raises the attempt of the FluxSetup: that attempt is not launched, and the Job of the previous one is
// deleted.
func TestAttemptThatAnotherClientRaises(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	setup := b.setup()
	setup.Spec.Attempt++
	b.Expect(b.client.Update(b.ctx, setup, client.FieldOwner("another"))).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonSetupChanged)
	b.reconcile()
	b.Expect(b.jobs()).To(HaveLen(1))
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
	b.collect()
	b.reconcile()
	b.Expect(b.job()).To(BeNil(), "it is not run again")
}
