package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

func TestGangRestartStopsAtMaxRestarts(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.create(withRestarts(2))
	for restart := int32(1); restart <= 2; restart++ {
		w.begin()
		w.recorded()
		applied := w.setupWrites
		w.reportAndRestart(setCommandFailed)
		flux, setup := w.flux(), w.setup()
		w.Expect(setup.Spec.Attempt).To(Equal(restart + 1))
		w.Expect(setup.Spec.Restarts).To(Equal(restart))
		w.Expect(w.setupWrites).To(Equal(applied+1), "attempt and restarts rise in one write")
		w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonRestarting)
		cause := w.expect(flux, v1alpha1.ConditionRestarting, metav1.ConditionTrue, v1alpha1.ReasonRestarting)
		w.Expect(cause.Message).To(ContainSubstring("CommandFailed: the command ended with 3"))
		w.Expect(flux.Status.Restarts).To(Equal(restart))
		w.Expect(flux.Status.ExitCode).To(BeNil(), "the current attempt has none")
		w.Expect(flux.Status.ReadyRanks).To(Equal(int32(0)))
		w.Expect(w.recorded()).To(ConsistOf("Warning Restarting " + cause.Message))
		w.expectSteadyState()

		w.report(setConfigured)
		w.Expect(w.expect(w.flux(), v1alpha1.ConditionRestarting, metav1.ConditionTrue, v1alpha1.ReasonRestarting)).
			To(HaveField("Message", cause.Message), "until the next quorum")
	}
	w.begin()
	w.expect(w.flux(), v1alpha1.ConditionRestarting, metav1.ConditionFalse, v1alpha1.ReasonNotRestarting)
	w.recorded()
	w.report(setCommandFailed)
	flux := w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonCommandFailed)
	w.Expect(*flux.Status.ExitCode).To(Equal(int32(3)))
	w.Expect(flux.Status.Restarts).To(Equal(int32(2)))
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(3)))
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning CommandFailed")))
	w.expectSteadyState()
}

// A restart that does not reach its quorum is followed by another restart, and each of them is reported.
func TestRestartsThatFailToStart(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.create(withRestarts(2))
	w.launch()
	w.recorded()
	for range 2 {
		w.reportAndRestart(setFailed(v1alpha1.ReasonImageNotPulled, "pulling image failed", nil))
		w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning Restarting")))
	}
	w.report(setFailed(v1alpha1.ReasonImageNotPulled, "pulling image failed", nil))
	flux := w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonImageNotPulled)
	w.Expect(flux.Status.ExitCode).To(BeNil())
	w.Expect(flux.Status.Restarts).To(Equal(int32(2)))
}

func TestCompleteAfterARestart(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withRestarts(5))
	w.reportAndRestart(setFailed(v1alpha1.ReasonJobLost, "Job job is gone", nil))
	w.begin()
	w.report(setSucceeded)
	flux := w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.Expect(flux.Status.Restarts).To(Equal(int32(1)))
	w.Expect(*flux.Status.ExitCode).To(Equal(int32(0)))
}

func TestDeadlineExceededIsNeverRestarted(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withRestarts(5))
	w.report(setFailed(v1alpha1.ReasonDeadlineExceeded, "it ran for longer than 60 s", new(int32(143))))
	flux := w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonDeadlineExceeded)
	w.Expect(flux.Status.Restarts).To(BeZero())
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)))
	w.expectSteadyState()
}

// The cache shows for a long time that the first attempt has failed, while the second or the third one runs.
func TestStaleFailureRestartsOnce(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withRestarts(5))
	w.reportOnly(setCommandFailed)
	w.freezeCache() // the cache shows the failure, and nothing after it
	w.clock.Step(maxBackOff)
	w.reconcile()
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))

	// The restart is not repeated, neither before nor after the FluxSetup controller has observed it.
	for _, report := range []func(*v1alpha1.FluxSetupStatus){nil, setRunning} {
		if report != nil {
			w.launch()
			w.report(report)
		}
		applied := w.setupWrites
		w.reconcile()
		w.reconcile()
		w.Expect(w.setupWrites).To(Equal(applied))
		w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
		w.Expect(w.setup().Spec.Restarts).To(Equal(int32(1)))
	}
	w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)

	w.unfreezeCache()
	w.reportAndRestart(setCommandFailed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(3)))
}

// A command that fails immediately is restarted at increasing intervals. Each restart takes one reconciliation, which
// no event triggers.
func TestRestartsBackOff(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.create(withRestarts(1000))
	began := w.clock.Now()
	for restart := int32(1); restart <= 8; restart++ {
		w.begin()
		w.recorded()
		wait := w.report(setCommandFailed).RequeueAfter
		w.Expect(wait).To(Equal(DefaultBackOff.after(restart - 1)))
		flux := w.flux()
		cause := w.expect(flux, v1alpha1.ConditionRestarting, metav1.ConditionTrue, v1alpha1.ReasonRestarting)
		w.Expect(cause.Message).To(ContainSubstring("CommandFailed: the command ended with 3"))
		w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonRestarting)
		w.Expect(flux.Status.ExitCode).To(Equal(new(int32(3))), "it is shown until the next attempt starts")
		w.expectSteadyState()

		w.clock.Step(wait - time.Second)
		w.Expect(w.reconcile().RequeueAfter).To(Equal(time.Second))
		w.Expect(w.setup().Spec.Restarts).To(Equal(restart - 1))
		w.clock.Step(time.Second)
		w.reconcile()
		w.Expect(w.setup().Spec.Restarts).To(Equal(restart))
		w.Expect(w.recorded()).To(ConsistOf("Warning Restarting " + cause.Message))
	}
	w.Expect(w.clock.Since(began)).To(Equal((10 + 20 + 40 + 80 + 160 + 3*300) * time.Second))
}

// The flag --restart-back-off sets it.
func TestRestartAfterAShorterBackOff(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.reconciler.BackOff = BackOff(time.Second)
	w.create(withRestarts(2))
	for restart := range int32(2) {
		w.begin()
		wait := w.report(setCommandFailed).RequeueAfter
		w.Expect(wait).To(Equal(time.Duration(restart+1) * time.Second))
		w.clock.Step(wait)
		w.reconcile()
		w.Expect(w.setup().Spec.Restarts).To(Equal(restart + 1))
	}
}

// The replica that launched the attempt had a clock that is an hour ahead of ours: that does not delay the restart.
func TestBackOffWithAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.create(withRestarts(1))
	now := w.clock.Now()
	w.clock.SetTime(now.Add(time.Hour))
	w.begin()
	w.clock.SetTime(now)
	w.Expect(w.report(setCommandFailed).RequeueAfter).To(Equal(time.Duration(DefaultBackOff)))
	w.clock.Step(time.Duration(DefaultBackOff))
	w.reconcile()
	w.Expect(w.setup().Spec.Restarts).To(Equal(int32(1)))
}

// An attempt starts no earlier than the back-off after the start of the failed attempt. Other changes of the spec do
// not wait.
func TestPlanOfARestartWaitsForItsBackOff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		restarts int32
		ran      time.Duration
		launched int32
		left     time.Duration
	}{
		"at once":                      {0, 0, 1, 10 * time.Second},
		"some of it has passed":        {0, 4 * time.Second, 1, 6 * time.Second},
		"all of it has passed":         {0, 10 * time.Second, 1, 0},
		"it doubles":                   {3, 10 * time.Second, 1, 70 * time.Second},
		"it has an end":                {1000, time.Minute, 1, 4 * time.Minute},
		"it ran for long":              {1000, time.Hour, 1, 0},
		"the launch of an earlier one": {0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			flux := fluxWith(jobSpec(withRestarts(1001)))
			setup := setupInAttempt(flux, 1, test.restarts, setCommandFailed)
			setup.Spec.Launch = &v1alpha1.Launch{Attempt: test.launched, Time: metav1.NewTime(noon.Add(-test.ran))}
			plan := planFor(flux, setup, noon, DefaultBackOff)
			g.Expect(plan.requeueAfter).To(Equal(test.left))
			if test.left == 0 {
				g.Expect(plan.backOff).To(BeZero())
				g.Expect(plan.desired.Spec.Attempt).To(Equal(int32(2)))
				return
			}
			g.Expect(plan.backOff).To(Equal(DefaultBackOff.after(test.restarts)))
			g.Expect(plan.desired).To(BeNil())
			flux.Spec.Suspend = true
			plan = planFor(flux, setup, noon, DefaultBackOff)
			g.Expect(plan.desired.Spec.Suspend).To(BeTrue())
			g.Expect(plan.requeueAfter).To(BeZero())
			flux.Spec.Suspend, setup.Spec.Suspend = false, true
			g.Expect(planFor(flux, setup, noon, DefaultBackOff).desired).To(BeNil(), "what has failed is not resumed")
			flux.Spec.StartupTimeoutSeconds = 7
			g.Expect(planFor(flux, setup, noon, DefaultBackOff).desired.Spec.Attempt).To(Equal(int32(1)))
		})
	}
}
