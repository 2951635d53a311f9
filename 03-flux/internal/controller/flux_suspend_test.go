package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

func TestSuspendBeforeTheStart(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	flux := w.create(isSuspended)
	w.Expect(w.setup().Spec.Suspend).To(BeTrue(), "it is made so, and never runs")
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	w.Expect(w.recorded()).To(BeEmpty())
	w.say(saysNothingLeft)
	flux = w.flux()
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	w.Expect(flux.Status.StartTime).To(BeNil())
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal Suspended")))
	w.expectRest()

	w.change(isResumed)
	setup := w.setup()
	w.Expect(setup.Spec.Suspend).To(BeFalse())
	w.Expect(setup.Spec.Attempt).To(Equal(int32(2)))
	w.Expect(setup.Spec.Restarts).To(BeZero(), "a resumption is no restart")
	w.expect(w.flux(), v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonNotSuspended)
	w.expectRest()
	w.begin()
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal Running")))
}

func TestSuspendWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start(withRestarts(1))
	w.recorded()
	flux := w.change(isSuspended)
	w.Expect(w.setup().Spec.Suspend).To(BeTrue())
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)))
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	w.say(saysSuspending)
	w.expectRest()
	w.say(saysNothingLeft)
	w.expect(w.flux(), v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	w.expectRest()

	w.clock.Step(time.Hour)
	w.change(isResumed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
	w.begin()
	flux = w.flux()
	w.Expect(flux.Status.Restarts).To(BeZero())
	w.Expect(flux.Status.StartTime.Time).To(BeTemporally("==", w.clock.Now()))
	w.sayAndRestart(saysCommandFailed)
	w.Expect(w.setup().Spec.Restarts).To(Equal(int32(1)), "the restart was not used up")
}

// It ended before it could be suspended: that is the end, and not a pause.
func TestSuspendTooLate(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start()
	w.change(isSuspended)
	w.say(saysSucceeded)
	flux := w.expectOver(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonFinished)
	w.change(isResumed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)), "nothing runs again")
	w.expectOver(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.expectRest()
}

// An attempt that failed while it was to be suspended is made again when it is resumed, and counts.
func TestSuspendOfAFailedAttempt(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start(withRestarts(1))
	w.change(isSuspended)
	w.say(saysCommandFailed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)), "nothing is started while it is suspended")
	w.expectRest()
	w.say(saysNothingLeft)
	flux := w.flux()
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	w.Expect(ended(flux)).To(BeFalse())
	w.expectRest()

	w.recorded()
	w.clock.Step(maxBackOff)
	w.change(isResumed)
	setup := w.setup()
	w.Expect(setup.Spec.Attempt).To(Equal(int32(2)))
	w.Expect(setup.Spec.Restarts).To(Equal(int32(1)))
	w.expect(w.flux(), v1alpha1.ConditionRestarting, metav1.ConditionTrue, v1alpha1.ReasonRestarting)
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning Restarting")))
	w.begin()

	// With no restart left, suspending does not keep it from being over.
	w.change(isSuspended)
	w.say(saysCommandFailed)
	w.expectOver(v1alpha1.ConditionFailed, v1alpha1.ReasonCommandFailed)
	w.change(isResumed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
}

// One half of the cache is behind: it does not suspend what was resumed, nor begin anew what was suspended.
func TestSuspendIsNotDecidedByAStaleCache(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]struct{ fluxes, setups bool }{
		"of Fluxes": {true, false}, "of FluxSetups": {false, true}, "both": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxWorld(t)
			w.create(isSuspended)
			w.say(saysNothingLeft)
			w.freezeOnly(half.fluxes, half.setups)
			stale := w.reconciler
			w.thaw()
			w.change(isResumed)
			w.begin()
			w.reconciler = stale
			_, _ = w.tryReconcile() // it may well find that its status is out of date
			w.Expect(w.setup().Spec.Suspend).To(BeFalse())
			w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))

			w.freezeOnly(half.fluxes, half.setups)
			stale = w.reconciler
			w.thaw()
			w.change(isSuspended)
			w.say(saysNothingLeft)
			w.reconciler = stale
			_, _ = w.tryReconcile()
			w.Expect(w.setup().Spec.Suspend).To(BeTrue())
			w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))

			w.thaw()
			w.reconcile()
			w.expect(w.flux(), v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
		})
	}
}
