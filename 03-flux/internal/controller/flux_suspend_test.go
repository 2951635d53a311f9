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
	w := newFluxTestEnv(t)
	flux := w.create(isSuspended)
	w.Expect(w.setup().Spec.Suspend).To(BeTrue(), "it is created suspended, and never runs")
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	w.Expect(w.recorded()).To(BeEmpty())
	w.report(setCleared)
	flux = w.flux()
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	w.Expect(flux.Status.StartTime).To(BeNil())
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal Suspended")))
	w.expectSteadyState()

	w.change(isResumed)
	setup := w.setup()
	w.Expect(setup.Spec.Suspend).To(BeFalse())
	w.Expect(setup.Spec.Attempt).To(Equal(int32(2)))
	w.Expect(setup.Spec.Restarts).To(BeZero(), "a resumption is no restart")
	w.expect(w.flux(), v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonNotSuspended)
	w.expectSteadyState()
	w.begin()
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal Running")))
}

func TestSuspendWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withRestarts(1))
	w.recorded()
	flux := w.change(isSuspended)
	w.Expect(w.setup().Spec.Suspend).To(BeTrue())
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)))
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	w.report(setSuspending)
	w.expectSteadyState()
	w.report(setCleared)
	w.expect(w.flux(), v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	w.expectSteadyState()

	w.clock.Step(time.Hour)
	w.change(isResumed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
	w.begin()
	flux = w.flux()
	w.Expect(flux.Status.Restarts).To(BeZero())
	w.Expect(flux.Status.StartTime.Time).To(BeTemporally("==", w.clock.Now()))
	w.reportAndRestart(setCommandFailed)
	w.Expect(w.setup().Spec.Restarts).To(Equal(int32(1)), "the restart was not used up")
}

// It ended before it could be suspended: it stays ended, and is not suspended.
func TestSuspendTooLate(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	w.change(isSuspended)
	w.report(setSucceeded)
	flux := w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonFinished)
	w.change(isResumed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)), "nothing runs again")
	w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.expectSteadyState()
}

// The Flux is suspended and resumed before the FluxSetup controller has observed the suspension, for example because the
// operator was down. The attempt may have ended by then, so no other begins before that is known.
func TestResumeBeforeTheSuspensionWasObserved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		report func(*v1alpha1.FluxSetupStatus)
		ended  bool
	}{
		"it has succeeded":    {setSucceeded, true},
		"its pods are to end": {setSuspending, false},
		"nothing is left":     {setCleared, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			w.start()
			w.change(isSuspended)
			flux := w.change(isResumed)
			w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)), "what the first attempt did is not known")
			w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonNotSuspended)
			w.expectSteadyState()
			w.report(test.report)
			if test.ended {
				w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
				w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)))
				return
			}
			w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
			w.Expect(w.setup().Spec.Suspend).To(BeFalse())
		})
	}
}

// An attempt that failed while it was being suspended is made again when it is resumed, and counts as a restart.
func TestSuspendOfAFailedAttempt(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withRestarts(1))
	w.change(isSuspended)
	w.report(setCommandFailed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)), "nothing is started while it is suspended")
	w.expectSteadyState()
	w.report(setCleared)
	flux := w.flux()
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	w.Expect(ended(flux)).To(BeFalse())
	w.expectSteadyState()

	w.recorded()
	w.clock.Step(maxBackOff)
	w.change(isResumed)
	setup := w.setup()
	w.Expect(setup.Spec.Attempt).To(Equal(int32(2)))
	w.Expect(setup.Spec.Restarts).To(Equal(int32(1)))
	w.expect(w.flux(), v1alpha1.ConditionRestarting, metav1.ConditionTrue, v1alpha1.ReasonRestarting)
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning Restarting")))
	w.begin()

	// If no restart is left, the Flux ends although it is suspended.
	w.change(isSuspended)
	w.report(setCommandFailed)
	w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonCommandFailed)
	w.change(isResumed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
}

// Only one kind in the cache is stale: then a resumed Flux is not suspended, and a suspended one is not started again.
func TestSuspendIsNotDecidedByAStaleCache(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]struct{ fluxes, setups bool }{
		"of Fluxes": {true, false}, "of FluxSetups": {false, true}, "both": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			w.create(isSuspended)
			w.report(setCleared)
			w.freezeCacheOf(half.fluxes, half.setups)
			stale := w.reconciler
			w.unfreezeCache()
			w.change(isResumed)
			w.begin()
			w.reconciler = stale
			_, _ = w.tryReconcile() // the status may be stale
			w.Expect(w.setup().Spec.Suspend).To(BeFalse())
			w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))

			w.freezeCacheOf(half.fluxes, half.setups)
			stale = w.reconciler
			w.unfreezeCache()
			w.change(isSuspended)
			w.report(setCleared)
			w.reconciler = stale
			_, _ = w.tryReconcile()
			w.Expect(w.setup().Spec.Suspend).To(BeTrue())
			w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))

			w.unfreezeCache()
			w.reconcile()
			w.expect(w.flux(), v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
		})
	}
}
