package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// conditionReasons are the reasons of the four conditions that always exist, with a + if the condition is True.
type conditionReasons struct{ ready, running, suspended, restarting string }

func reasonsOf(status v1alpha1.FluxStatus) conditionReasons {
	reason := func(kind string) string {
		condition := conditionOf(status.Conditions, kind)
		if condition.Status == metav1.ConditionTrue {
			return "+" + condition.Reason
		}
		return condition.Reason
	}
	return conditionReasons{
		reason(v1alpha1.ConditionSetupReady), reason(v1alpha1.ConditionRunning),
		reason(v1alpha1.ConditionSuspended), reason(v1alpha1.ConditionRestarting),
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	// A Flux with restarts to spare, and a FluxSetup in its second attempt.
	flux := func(change ...func(*v1alpha1.FluxSpec)) *v1alpha1.Flux {
		return fluxWith(jobSpec(append(change, withRestarts(5))...))
	}
	older := func(report func(*v1alpha1.FluxSetupStatus)) func(*v1alpha1.FluxSetupStatus) {
		return func(status *v1alpha1.FluxSetupStatus) { report(status); status.Attempt-- }
	}
	notTrue := func(kind, reason string) func(*v1alpha1.FluxSetupStatus) {
		return func(status *v1alpha1.FluxSetupStatus) {
			setConfigured(status)
			setSetupCondition(status, kind, false, reason, "why")
		}
	}
	silent := func(status *v1alpha1.FluxSetupStatus) { status.Attempt = 0 }
	for name, test := range map[string]struct {
		flux     *v1alpha1.Flux
		restarts int32
		report   func(*v1alpha1.FluxSetupStatus) // nil: there is no FluxSetup
		failure  *failure
		want     conditionReasons
	}{
		"just made": {flux(), 0, silent, nil,
			conditionReasons{"Starting", "Starting", "NotSuspended", "NotRestarting"}},
		"accepted, and no more": {flux(), 0, func(s *v1alpha1.FluxSetupStatus) {
			setSetupCondition(s, v1alpha1.ConditionAccepted, true, v1alpha1.ReasonOwned, "")
		}, nil,
			conditionReasons{"Starting", "Starting", "NotSuspended", "NotRestarting"}},
		"not accepted": {flux(), 0, notTrue(v1alpha1.ConditionAccepted, v1alpha1.ReasonNotOwned), nil,
			conditionReasons{"NotOwned", "NotOwned", "NotSuspended", "NotRestarting"}},
		"a name taken": {flux(), 0, notTrue(v1alpha1.ConditionConfigured, v1alpha1.ReasonNameConflict), nil,
			conditionReasons{"NameConflict", "NameConflict", "NotSuspended", "NotRestarting"}},
		"old pods": {flux(), 0, notTrue(v1alpha1.ConditionConfigured, v1alpha1.ReasonWaitingForPods), nil,
			conditionReasons{"WaitingForPods", "WaitingForPods", "NotSuspended", "NotRestarting"}},
		"configured": {flux(), 0, setConfigured, nil,
			conditionReasons{"+Configured", "Starting", "NotSuspended", "NotRestarting"}},
		"no image": {flux(), 0, notTrue(v1alpha1.ConditionQuorumReached, v1alpha1.ReasonImageNotPulled), nil,
			conditionReasons{"+Configured", "ImageNotPulled", "NotSuspended", "NotRestarting"}},
		"running": {flux(), 0, setRunning, nil,
			conditionReasons{"+Configured", "+QuorumReached", "NotSuspended", "NotRestarting"}},
		"an older attempt ran": {flux(), 0, older(setRunning), nil,
			conditionReasons{"Starting", "Starting", "NotSuspended", "NotRestarting"}},
		"an older attempt failed": {flux(), 1, older(setCommandFailed), nil,
			conditionReasons{"Starting", "Restarting", "NotSuspended", "+Restarting"}},
		"restarted, and not yet reported": {flux(), 1, setConfigured, nil,
			conditionReasons{"+Configured", "Restarting", "NotSuspended", "+Restarting"}},
		"restarted, and runs": {flux(), 1, setRunning, nil,
			conditionReasons{"+Configured", "+QuorumReached", "NotSuspended", "NotRestarting"}},
		"restarted, and a name taken": {flux(), 1, notTrue(v1alpha1.ConditionConfigured, v1alpha1.ReasonNameConflict), nil,
			conditionReasons{"NameConflict", "NameConflict", "NotSuspended", "+Restarting"}},
		"to be suspended": {flux(isSuspended), 0, setRunning, nil,
			conditionReasons{"Suspending", "Suspending", "Suspending", "NotRestarting"}},
		"suspending": {flux(isSuspended), 0, setSuspending, nil,
			conditionReasons{"Suspending", "Suspending", "Suspending", "NotRestarting"}},
		"suspended": {flux(isSuspended), 0, setCleared, nil,
			conditionReasons{"Suspended", "Suspended", "+Suspended", "NotRestarting"}},
		"suspended in an older attempt": {flux(isSuspended), 0, older(setCleared), nil,
			conditionReasons{"Suspending", "Suspending", "Suspending", "NotRestarting"}},
		"suspended with a restart to come": {flux(isSuspended), 1, older(setCommandFailed), nil,
			conditionReasons{"Suspending", "Suspending", "Suspending", "NotRestarting"}},
		"a FluxSetup that is not owned": {flux(), 0, nil, &failure{reason: v1alpha1.ReasonNameConflict},
			conditionReasons{"NameConflict", "NameConflict", "NotSuspended", "NotRestarting"}},
		"a FluxSetup that is not owned, suspended": {flux(isSuspended), 0, nil, &failure{reason: v1alpha1.ReasonNameConflict},
			conditionReasons{"NameConflict", "NameConflict", "Suspending", "NotRestarting"}},
		"rejected, and it runs": {flux(), 0, setRunning, &failure{reason: v1alpha1.ReasonApplyFailed},
			conditionReasons{"ApplyFailed", "+QuorumReached", "NotSuspended", "NotRestarting"}},
		"rejected, and it starts": {flux(), 1, setConfigured, &failure{reason: v1alpha1.ReasonApplyFailed},
			conditionReasons{"ApplyFailed", "ApplyFailed", "NotSuspended", "+Restarting"}},
		"no connection": {flux(), 0, nil, &failure{reason: v1alpha1.ReasonAPIError},
			conditionReasons{"APIError", "APIError", "NotSuspended", "NotRestarting"}},
		"no connection, and it runs": {flux(), 0, setRunning, &failure{reason: v1alpha1.ReasonAPIError},
			conditionReasons{"APIError", "+QuorumReached", "NotSuspended", "NotRestarting"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			observed := fluxObservation{now: noon, failure: test.failure}
			if test.report != nil {
				observed.setup = setupInAttempt(test.flux, 2, test.restarts, test.report)
			}
			status := fluxStatus(test.flux, observed)
			g.Expect(reasonsOf(status)).To(Equal(test.want))
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
	failedBefore := setupInAttempt(flux, 2, 1, setCommandFailed)
	failedBefore.Status.Attempt = 1
	g.Expect(see(failedBefore).Message).To(Equal(cause))
	g.Expect(see(setupInAttempt(flux, 2, 1, setConfigured)).Message).To(Equal(cause), "the FluxSetup no longer reports it")
	g.Expect(see(setupInAttempt(flux, 2, 1, setRunning)).Status).To(Equal(metav1.ConditionFalse))
	g.Expect(see(setupInAttempt(flux, 2, 1, setConfigured)).Status).To(Equal(metav1.ConditionFalse), "a restart ends with its quorum")
	g.Expect(see(setupInAttempt(flux, 3, 1, setConfigured)).Status).To(Equal(metav1.ConditionFalse), "a resumption is no restart")
	g.Expect(see(setupInAttempt(flux, 4, 2, setConfigured)).Message).To(Equal("restart 2 of 5"), "its cause was not observed")
}

func TestRestartThatWaitsForItsBackOff(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	flux := fluxWith(jobSpec(withRestarts(5)))
	status := fluxStatus(flux, fluxObservation{
		setup: setupInAttempt(flux, 2, 1, setCommandFailed), now: noon, plan: plan{backOff: 20 * time.Second},
	})
	g.Expect(reasonsOf(status)).To(Equal(conditionReasons{"+Configured", "Restarting", "NotSuspended", "+Restarting"}))
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionRestarting).Message).To(
		Equal("restart 2 of 5, because attempt 2 failed with CommandFailed: the command ended with 3"))
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionRunning).Message).To(ContainSubstring("20s"))
	g.Expect(status.Restarts).To(Equal(int32(1)), "it has not been restarted yet")
}

// A read failed, so only the failure is known: all other conditions stay, and keep their observedGeneration.
func TestStatusOfAFailedRead(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	flux := fluxWith(jobSpec())
	flux.Status = fluxStatus(flux, fluxObservation{setup: setupInAttempt(flux, 1, 0, setRunning), now: noon})
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
	three := func(status *v1alpha1.FluxSetupStatus) { setConfigured(status); status.ReadyRanks = 3 }
	for name, test := range map[string]struct {
		report   func(*v1alpha1.FluxSetupStatus)
		launch   *v1alpha1.Launch
		end      *ending
		ready    int32
		exitCode *int32
		started  bool
	}{
		"not launched":           {report: func(s *v1alpha1.FluxSetupStatus) { s.Attempt = 1 }, ready: 0},
		"launched, not reported": {report: func(s *v1alpha1.FluxSetupStatus) { s.Attempt = 1 }, launch: launch(2), ready: 0},
		"launched":               {report: setConfigured, launch: launch(2), ready: 0, started: true},
		"an older launch":        {report: setConfigured, launch: launch(1), ready: 0},
		"three of four":          {report: three, launch: launch(2), ready: 3, started: true},
		"running":                {report: setRunning, launch: launch(2), ready: 4, started: true},
		"older numbers":          {report: func(s *v1alpha1.FluxSetupStatus) { setRunning(s); s.Attempt = 1 }, launch: launch(1), ready: 0},
		"over": {report: setSucceeded, launch: launch(2), started: true, ready: 0,
			end: &ending{condition: v1alpha1.ConditionComplete, reason: "x", exitCode: new(int32(0))}, exitCode: new(int32(0))},
		"over without an exit code": {report: setRunning, launch: launch(2), started: true, ready: 0,
			end: &ending{condition: v1alpha1.ConditionFailed, reason: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			flux := fluxWith(jobSpec())
			flux.Status = v1alpha1.FluxStatus{ExitCode: new(int32(7)), StartTime: &metav1.Time{Time: noon.Add(-time.Hour)}}
			setup := setupInAttempt(flux, 2, 1, test.report)
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

func TestEndDoesNotChange(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	flux := fluxWith(jobSpec())
	failed := setupInAttempt(flux, 1, 0, setFailed(v1alpha1.ReasonImageNotPulled, "no image", nil))
	flux.Status = fluxStatus(flux, fluxObservation{setup: failed, now: noon, plan: plan{end: endOf(flux, failed)}})
	end := *flux.Status.DeepCopy()
	g.Expect(reasonsOf(end)).To(Equal(conditionReasons{"+Configured", "Finished", "NotSuspended", "NotRestarting"}))

	// Hours later, whatever exists then, only SetupReady and observedGeneration change.
	flux.Generation, flux.Spec.Suspend = 2, true
	for name, observed := range map[string]fluxObservation{
		"as it was":          {setup: failed},
		"another attempt":    {setup: setupInAttempt(flux, 2, 1, setRunning)},
		"another end":        {setup: setupInAttempt(flux, 1, 0, setSucceeded)},
		"another failure":    {setup: setupInAttempt(flux, 1, 0, setCommandFailed)},
		"torn down":          {setup: setupInAttempt(flux, 1, 0, setCleared)},
		"lost, reported":     {plan: plan{obstacle: &obstacle{reason: v1alpha1.ReasonSetupLost}}},
		"lost, not reported": {},
		"not owned":          {plan: plan{obstacle: &obstacle{reason: v1alpha1.ReasonNameConflict}}},
		"not writable":       {setup: failed, failure: &failure{reason: v1alpha1.ReasonApplyFailed}},
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

	// The output of the end may be reported late.
	late := setupInAttempt(flux, 1, 0, setFailed(v1alpha1.ReasonImageNotPulled, "no image; rank 0 said this", new(int32(143))))
	status := fluxStatus(flux, fluxObservation{setup: late, now: noon.Add(time.Hour)})
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionFailed).Message).To(HaveSuffix("rank 0 said this"))
	g.Expect(conditionOf(status.Conditions, v1alpha1.ConditionFailed).LastTransitionTime.Time).To(Equal(noon))
	g.Expect(*status.ExitCode).To(Equal(int32(143)))
	g.Expect(status.CompletionTime.Time).To(Equal(noon))
}

// A condition of another controller says which generation that one has seen, not what this one has.
func TestConditionsOfOthersStay(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	other := metav1.Condition{Type: "example.com/Other", Status: metav1.ConditionTrue, Reason: "Other", ObservedGeneration: 3}
	flux := fluxWith(jobSpec())
	flux.Status.Conditions = []metav1.Condition{other}
	g.Expect(fluxStatus(flux, fluxObservation{now: noon}).Conditions).To(ContainElement(other))
	setup := launchedSetup(fullFlux())
	setup.Status.Conditions = append(setup.Status.Conditions, other)
	status, _ := setupStatus(setup, setupObservation{now: noon})
	g.Expect(status.Conditions).To(ContainElement(other))
}
