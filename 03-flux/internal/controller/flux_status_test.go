package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// told is what the four conditions that are always there amount to: a reason each, with a + if it is True.
type told struct{ ready, running, suspended, restarting string }

func tell(status v1alpha1.FluxStatus) told {
	say := func(kind string) string {
		condition := conditionOf(status.Conditions, kind)
		if condition.Status == metav1.ConditionTrue {
			return "+" + condition.Reason
		}
		return condition.Reason
	}
	return told{
		say(v1alpha1.ConditionSetupReady), say(v1alpha1.ConditionRunning),
		say(v1alpha1.ConditionSuspended), say(v1alpha1.ConditionRestarting),
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	// A Flux with restarts to spare, and a FluxSetup in its second attempt.
	flux := func(change ...func(*v1alpha1.FluxSpec)) *v1alpha1.Flux {
		return fluxWith(jobSpec(append(change, withRestarts(5))...))
	}
	older := func(say func(*v1alpha1.FluxSetupStatus)) func(*v1alpha1.FluxSetupStatus) {
		return func(status *v1alpha1.FluxSetupStatus) { say(status); status.Attempt-- }
	}
	says := func(kind, reason string) func(*v1alpha1.FluxSetupStatus) {
		return func(status *v1alpha1.FluxSetupStatus) {
			saysConfigured(status)
			saysThat(status, kind, false, reason, "why")
		}
	}
	silent := func(status *v1alpha1.FluxSetupStatus) { status.Attempt = 0 }
	for name, test := range map[string]struct {
		flux     *v1alpha1.Flux
		restarts int32
		says     func(*v1alpha1.FluxSetupStatus) // nil: there is no FluxSetup
		failure  *failure
		want     told
	}{
		"just made": {flux(), 0, silent, nil,
			told{"Starting", "Starting", "NotSuspended", "NotRestarting"}},
		"accepted, and no more": {flux(), 0, func(s *v1alpha1.FluxSetupStatus) {
			saysThat(s, v1alpha1.ConditionAccepted, true, v1alpha1.ReasonOwned, "")
		}, nil,
			told{"Starting", "Starting", "NotSuspended", "NotRestarting"}},
		"not accepted": {flux(), 0, says(v1alpha1.ConditionAccepted, v1alpha1.ReasonNotOwned), nil,
			told{"NotOwned", "NotOwned", "NotSuspended", "NotRestarting"}},
		"a name taken": {flux(), 0, says(v1alpha1.ConditionConfigured, v1alpha1.ReasonNameConflict), nil,
			told{"NameConflict", "NameConflict", "NotSuspended", "NotRestarting"}},
		"old pods": {flux(), 0, says(v1alpha1.ConditionConfigured, v1alpha1.ReasonWaitingForPods), nil,
			told{"WaitingForPods", "WaitingForPods", "NotSuspended", "NotRestarting"}},
		"configured": {flux(), 0, saysConfigured, nil,
			told{"+Configured", "Starting", "NotSuspended", "NotRestarting"}},
		"no image": {flux(), 0, says(v1alpha1.ConditionQuorumReached, v1alpha1.ReasonImageNotPulled), nil,
			told{"+Configured", "ImageNotPulled", "NotSuspended", "NotRestarting"}},
		"running": {flux(), 0, saysRunning, nil,
			told{"+Configured", "+QuorumReached", "NotSuspended", "NotRestarting"}},
		"an older attempt ran": {flux(), 0, older(saysRunning), nil,
			told{"Starting", "Starting", "NotSuspended", "NotRestarting"}},
		"an older attempt failed": {flux(), 1, older(saysCommandFailed), nil,
			told{"Starting", "Restarting", "NotSuspended", "+Restarting"}},
		"restarted, and not yet reported": {flux(), 1, saysConfigured, nil,
			told{"+Configured", "Restarting", "NotSuspended", "+Restarting"}},
		"restarted, and runs": {flux(), 1, saysRunning, nil,
			told{"+Configured", "+QuorumReached", "NotSuspended", "NotRestarting"}},
		"restarted, and a name taken": {flux(), 1, says(v1alpha1.ConditionConfigured, v1alpha1.ReasonNameConflict), nil,
			told{"NameConflict", "NameConflict", "NotSuspended", "+Restarting"}},
		"to be suspended": {flux(isSuspended), 0, saysRunning, nil,
			told{"Suspending", "Suspending", "Suspending", "NotRestarting"}},
		"suspending": {flux(isSuspended), 0, saysSuspending, nil,
			told{"Suspending", "Suspending", "Suspending", "NotRestarting"}},
		"suspended": {flux(isSuspended), 0, saysNothingLeft, nil,
			told{"Suspended", "Suspended", "+Suspended", "NotRestarting"}},
		"suspended in an older attempt": {flux(isSuspended), 0, older(saysNothingLeft), nil,
			told{"Suspending", "Suspending", "Suspending", "NotRestarting"}},
		"suspended with a restart to come": {flux(isSuspended), 1, older(saysCommandFailed), nil,
			told{"Suspending", "Suspending", "Suspending", "NotRestarting"}},
		"a foreign FluxSetup": {flux(), 0, nil, &failure{reason: v1alpha1.ReasonNameConflict},
			told{"NameConflict", "NameConflict", "NotSuspended", "NotRestarting"}},
		"a foreign FluxSetup, suspended": {flux(isSuspended), 0, nil, &failure{reason: v1alpha1.ReasonNameConflict},
			told{"NameConflict", "NameConflict", "Suspending", "NotRestarting"}},
		"rejected, and it runs": {flux(), 0, saysRunning, &failure{reason: v1alpha1.ReasonApplyFailed},
			told{"ApplyFailed", "+QuorumReached", "NotSuspended", "NotRestarting"}},
		"rejected, and it starts": {flux(), 1, saysConfigured, &failure{reason: v1alpha1.ReasonApplyFailed},
			told{"ApplyFailed", "ApplyFailed", "NotSuspended", "+Restarting"}},
		"no connection": {flux(), 0, nil, &failure{reason: v1alpha1.ReasonAPIError},
			told{"APIError", "APIError", "NotSuspended", "NotRestarting"}},
		"no connection, and it runs": {flux(), 0, saysRunning, &failure{reason: v1alpha1.ReasonAPIError},
			told{"APIError", "+QuorumReached", "NotSuspended", "NotRestarting"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			observed := fluxObservation{now: noon, failure: test.failure}
			if test.says != nil {
				observed.setup = setupSaying(test.flux, 2, test.restarts, test.says)
			}
			status := fluxStatus(test.flux, observed)
			g.Expect(tell(status)).To(Equal(test.want))
			g.Expect(status.Conditions).To(HaveLen(4), "Complete and Failed are not there until they are True")
			for _, condition := range status.Conditions {
				g.Expect(condition.ObservedGeneration).To(Equal(int64(1)))
			}
			g.Expect(status.CompletionTime).To(BeNil())
		})
	}
}

func TestRestartingKeepsItsCauseUntilTheQuorum(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	flux := fluxWith(jobSpec(withRestarts(5)))
	const cause = "restart 1 of 5, because attempt 1 failed with CommandFailed: the command ended with 3"
	see := func(setup *v1alpha1.FluxSetup) metav1.Condition {
		flux.Status = fluxStatus(flux, fluxObservation{setup: setup, now: noon})
		return conditionOf(flux.Status.Conditions, v1alpha1.ConditionRestarting)
	}
	failedBefore := setupSaying(flux, 2, 1, saysCommandFailed)
	failedBefore.Status.Attempt = 1
	g.Expect(see(failedBefore).Message).To(Equal(cause))
	g.Expect(see(setupSaying(flux, 2, 1, saysConfigured)).Message).To(Equal(cause), "the FluxSetup says it no more")
	g.Expect(see(setupSaying(flux, 2, 1, saysRunning)).Status).To(Equal(metav1.ConditionFalse))
	g.Expect(see(setupSaying(flux, 2, 1, saysConfigured)).Status).To(Equal(metav1.ConditionFalse), "a restart is over with its quorum")
	g.Expect(see(setupSaying(flux, 3, 1, saysConfigured)).Status).To(Equal(metav1.ConditionFalse), "a resumption is no restart")
	g.Expect(see(setupSaying(flux, 4, 2, saysConfigured)).Message).To(Equal("restart 2 of 5"), "its cause was never seen")
}

func TestRestartThatWaitsForItsBackOff(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	flux := fluxWith(jobSpec(withRestarts(5)))
	status := fluxStatus(flux, fluxObservation{
		setup: setupSaying(flux, 2, 1, saysCommandFailed), now: noon, plan: plan{backOff: 20 * time.Second},
	})
	g.Expect(tell(status)).To(Equal(told{"+Configured", "Restarting", "NotSuspended", "+Restarting"}))
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionRestarting).Message).To(
		Equal("restart 2 of 5, because attempt 2 failed with CommandFailed: the command ended with 3"))
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionRunning).Message).To(ContainSubstring("20s"))
	g.Expect(status.Restarts).To(Equal(int32(1)), "it has not been restarted yet")
}

// Nothing is known but that a read has failed: all else stays, and is not said of the present generation.
func TestStatusOfAFailedRead(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	flux := fluxWith(jobSpec())
	flux.Status = fluxStatus(flux, fluxObservation{setup: setupSaying(flux, 1, 0, saysRunning), now: noon})
	before := flux.Status.DeepCopy()
	flux.Generation = 2
	status := fluxStatus(flux, fluxObservation{unread: true, now: noon.Add(time.Hour), failure: &failure{reason: v1alpha1.ReasonAPIError, message: "why"}})
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionSetupReady)).To(And(
		HaveField("Reason", v1alpha1.ReasonAPIError), HaveField("ObservedGeneration", int64(2))))
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionRunning)).To(Equal(conditionOf(before.Conditions, v1alpha1.ConditionRunning)))
	g.Expect(status.ReadyRanks).To(Equal(before.ReadyRanks))
	g.Expect(status.StartTime).To(Equal(before.StartTime))
}

func TestStatusNumbers(t *testing.T) {
	t.Parallel()
	launch := func(attempt int32) *v1alpha1.Launch {
		return &v1alpha1.Launch{Attempt: attempt, Time: metav1.NewTime(noon)}
	}
	three := func(status *v1alpha1.FluxSetupStatus) { saysConfigured(status); status.ReadyRanks = 3 }
	for name, test := range map[string]struct {
		says     func(*v1alpha1.FluxSetupStatus)
		launch   *v1alpha1.Launch
		end      *ending
		ready    int32
		exitCode *int32
		started  bool
	}{
		"not launched":              {says: func(s *v1alpha1.FluxSetupStatus) { s.Attempt = 1 }, ready: 0},
		"launched, and not told of": {says: func(s *v1alpha1.FluxSetupStatus) { s.Attempt = 1 }, launch: launch(2), ready: 0},
		"launched":                  {says: saysConfigured, launch: launch(2), ready: 0, started: true},
		"an older launch":           {says: saysConfigured, launch: launch(1), ready: 0},
		"three of four":             {says: three, launch: launch(2), ready: 3, started: true},
		"running":                   {says: saysRunning, launch: launch(2), ready: 4, started: true},
		"older numbers":             {says: func(s *v1alpha1.FluxSetupStatus) { saysRunning(s); s.Attempt = 1 }, launch: launch(1), ready: 0},
		"over": {says: saysSucceeded, launch: launch(2), started: true, ready: 0,
			end: &ending{condition: v1alpha1.ConditionComplete, reason: "x", exitCode: new(int32(0))}, exitCode: new(int32(0))},
		"over without an exit code": {says: saysRunning, launch: launch(2), started: true, ready: 0,
			end: &ending{condition: v1alpha1.ConditionFailed, reason: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			flux := fluxWith(jobSpec())
			flux.Status = v1alpha1.FluxStatus{ExitCode: new(int32(7)), StartTime: &metav1.Time{Time: noon.Add(-time.Hour)}}
			setup := setupSaying(flux, 2, 1, test.says)
			setup.Spec.Launch = test.launch
			status := fluxStatus(flux, fluxObservation{setup: setup, now: noon, plan: plan{end: test.end}})
			g.Expect(status.ReadyRanks).To(Equal(test.ready))
			g.Expect(status.ExitCode).To(Equal(test.exitCode))
			g.Expect(status.Restarts).To(Equal(int32(1)))
			g.Expect(*status.SetupRef).To(Equal(v1alpha1.SetupReference{Name: "job", UID: "setup-uid"}))
			g.Expect(status.StartTime != nil).To(Equal(test.started))
			g.Expect(status.CompletionTime != nil).To(Equal(test.end != nil))
		})
	}
}

func TestNothingOfTheEndChanges(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	flux := fluxWith(jobSpec())
	failed := setupSaying(flux, 1, 0, saysFailed(v1alpha1.ReasonImageNotPulled, "no image", nil))
	flux.Status = fluxStatus(flux, fluxObservation{setup: failed, now: noon, plan: plan{end: endOf(flux, failed)}})
	end := *flux.Status.DeepCopy()
	g.Expect(tell(end)).To(Equal(told{"+Configured", "Finished", "NotSuspended", "NotRestarting"}))

	// Hours later, whatever there is then, only SetupReady and the generation follow.
	flux.Generation, flux.Spec.Suspend = 2, true
	for name, observed := range map[string]fluxObservation{
		"as it was":        {setup: failed},
		"another attempt":  {setup: setupSaying(flux, 2, 1, saysRunning)},
		"another end":      {setup: setupSaying(flux, 1, 0, saysSucceeded)},
		"another failure":  {setup: setupSaying(flux, 1, 0, saysCommandFailed)},
		"cleared away":     {setup: setupSaying(flux, 1, 0, saysNothingLeft)},
		"gone, and noted":  {plan: plan{obstacle: &obstacle{reason: v1alpha1.ReasonSetupLost}}},
		"gone, not how":    {},
		"somebody's":       {plan: plan{obstacle: &obstacle{reason: v1alpha1.ReasonNameConflict}}},
		"no more writable": {setup: failed, failure: &failure{reason: v1alpha1.ReasonApplyFailed}},
	} {
		observed.now = noon.Add(time.Hour)
		status := fluxStatus(flux, observed)
		g.Expect(status.ObservedGeneration).To(Equal(int64(2)), name)
		for _, before := range end.Conditions {
			if before.Type == v1alpha1.ConditionSetupReady {
				continue
			}
			before.ObservedGeneration = 2
			g.Expect(conditionOf(status.Conditions, before.Type)).To(Equal(before), name)
		}
		status.Conditions, status.ObservedGeneration = end.Conditions, end.ObservedGeneration
		g.Expect(status).To(Equal(end), name)
	}

	// The last words of the end itself may come late.
	late := setupSaying(flux, 1, 0, saysFailed(v1alpha1.ReasonImageNotPulled, "no image; rank 0 said this", new(int32(143))))
	status := fluxStatus(flux, fluxObservation{setup: late, now: noon.Add(time.Hour)})
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionFailed).Message).To(HaveSuffix("rank 0 said this"))
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionFailed).LastTransitionTime.Time).To(Equal(noon))
	g.Expect(*status.ExitCode).To(Equal(int32(143)))
	g.Expect(status.CompletionTime.Time).To(Equal(noon))
}
