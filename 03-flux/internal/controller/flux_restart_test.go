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
	w := newFluxWorld(t)
	w.create(withRestarts(2))
	for restart := int32(1); restart <= 2; restart++ {
		w.begin()
		w.recorded()
		applied := w.setupWrites
		w.sayAndRestart(saysCommandFailed)
		flux, setup := w.flux(), w.setup()
		w.Expect(setup.Spec.Attempt).To(Equal(restart + 1))
		w.Expect(setup.Spec.Restarts).To(Equal(restart))
		w.Expect(w.setupWrites).To(Equal(applied+1), "attempt and restarts rise in one write")
		w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonRestarting)
		cause := w.expect(flux, v1alpha1.ConditionRestarting, metav1.ConditionTrue, v1alpha1.ReasonRestarting)
		w.Expect(cause.Message).To(ContainSubstring("CommandFailed: the command ended with 3"))
		w.Expect(flux.Status.Restarts).To(Equal(restart))
		w.Expect(flux.Status.ExitCode).To(BeNil(), "the present attempt has none")
		w.Expect(flux.Status.ReadyRanks).To(Equal(int32(0)))
		w.Expect(w.recorded()).To(ConsistOf("Warning Restarting " + cause.Message))
		w.expectRest()

		w.say(saysConfigured)
		w.Expect(w.expect(w.flux(), v1alpha1.ConditionRestarting, metav1.ConditionTrue, v1alpha1.ReasonRestarting)).
			To(HaveField("Message", cause.Message), "until the next quorum")
	}
	w.begin()
	w.expect(w.flux(), v1alpha1.ConditionRestarting, metav1.ConditionFalse, v1alpha1.ReasonNotRestarting)
	w.recorded()
	w.say(saysCommandFailed)
	flux := w.expectOver(v1alpha1.ConditionFailed, v1alpha1.ReasonCommandFailed)
	w.Expect(*flux.Status.ExitCode).To(Equal(int32(3)))
	w.Expect(flux.Status.Restarts).To(Equal(int32(2)))
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(3)))
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning CommandFailed")))
	w.expectRest()
}

// A restart that never reaches its quorum is restarted too, and each of them is told of.
func TestRestartsThatFailToStart(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.create(withRestarts(2))
	w.launch()
	w.recorded()
	for range 2 {
		w.sayAndRestart(saysFailed(v1alpha1.ReasonImageNotPulled, "pulling image failed", nil))
		w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning Restarting")))
	}
	w.say(saysFailed(v1alpha1.ReasonImageNotPulled, "pulling image failed", nil))
	flux := w.expectOver(v1alpha1.ConditionFailed, v1alpha1.ReasonImageNotPulled)
	w.Expect(flux.Status.ExitCode).To(BeNil())
	w.Expect(flux.Status.Restarts).To(Equal(int32(2)))
}

func TestCompleteAfterARestart(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start(withRestarts(5))
	w.sayAndRestart(saysFailed(v1alpha1.ReasonJobLost, "Job job is gone", nil))
	w.begin()
	w.say(saysSucceeded)
	flux := w.expectOver(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.Expect(flux.Status.Restarts).To(Equal(int32(1)))
	w.Expect(*flux.Status.ExitCode).To(Equal(int32(0)))
}

func TestDeadlineExceededIsNeverRestarted(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start(withRestarts(5))
	w.say(saysFailed(v1alpha1.ReasonDeadlineExceeded, "it ran for longer than 60 s", new(int32(143))))
	flux := w.expectOver(v1alpha1.ConditionFailed, v1alpha1.ReasonDeadlineExceeded)
	w.Expect(flux.Status.Restarts).To(BeZero())
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)))
	w.expectRest()
}

// The cache says for long that the first attempt has failed, when the second one is under way or the third.
func TestStaleFailureRestartsOnce(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start(withRestarts(5))
	w.whisper(saysCommandFailed)
	w.freeze() // the cache knows of the failure, and of nothing after it
	w.clock.Step(maxBackOff)
	w.reconcile()
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))

	// The restart is not done again before the FluxSetup controller has seen it, nor after it has.
	for _, says := range []func(*v1alpha1.FluxSetupStatus){nil, saysRunning} {
		if says != nil {
			w.launch()
			w.say(says)
		}
		applied := w.setupWrites
		w.reconcile()
		w.reconcile()
		w.Expect(w.setupWrites).To(Equal(applied))
		w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
		w.Expect(w.setup().Spec.Restarts).To(Equal(int32(1)))
	}
	w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)

	w.thaw()
	w.sayAndRestart(saysCommandFailed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(3)))
}

// A command that fails at once is run again at longer and longer intervals. One reconciliation, which no event triggers,
// starts each of them.
func TestRestartsBackOff(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.create(withRestarts(1000))
	began := w.clock.Now()
	for restart := int32(1); restart <= 8; restart++ {
		w.begin()
		w.recorded()
		wait := w.say(saysCommandFailed).RequeueAfter
		w.Expect(wait).To(Equal(backOffAfter(restart - 1)))
		flux := w.flux()
		cause := w.expect(flux, v1alpha1.ConditionRestarting, metav1.ConditionTrue, v1alpha1.ReasonRestarting)
		w.Expect(cause.Message).To(ContainSubstring("CommandFailed: the command ended with 3"))
		w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonRestarting)
		w.Expect(flux.Status.ExitCode).To(Equal(new(int32(3))), "it is shown until the next attempt starts")
		w.expectRest()

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

// An attempt starts no earlier than its back-off after the start of the one that failed. What else may be changed
// does not wait.
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
		"another replica's clock":      {0, -time.Hour, 1, 10 * time.Second},
		"the launch of an earlier one": {0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			flux := fluxWith(jobSpec(withRestarts(1001)))
			setup := setupSaying(flux, 1, test.restarts, saysCommandFailed)
			setup.Spec.Launch = &v1alpha1.Launch{Attempt: test.launched, Time: metav1.NewTime(noon.Add(-test.ran))}
			plan := planFor(flux, setup, noon)
			g.Expect(plan.requeueAfter).To(Equal(test.left))
			if test.left == 0 {
				g.Expect(plan.backOff).To(BeZero())
				g.Expect(plan.apply.Spec.Attempt).To(Equal(int32(2)))
				return
			}
			g.Expect(plan.backOff).To(Equal(backOffAfter(test.restarts)))
			g.Expect(plan.apply).To(BeNil())
			flux.Spec.Suspend = true
			plan = planFor(flux, setup, noon)
			g.Expect(plan.apply.Spec.Suspend).To(BeTrue())
			g.Expect(plan.requeueAfter).To(BeZero())
			flux.Spec.Suspend, setup.Spec.Suspend = false, true
			g.Expect(planFor(flux, setup, noon).apply).To(BeNil(), "what has failed is not resumed")
			flux.Spec.StartupTimeoutSeconds = 7
			g.Expect(planFor(flux, setup, noon).apply.Spec.Attempt).To(Equal(int32(1)))
		})
	}
}
