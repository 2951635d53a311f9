package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/03-flux/api/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// setupInAttempt is the FluxSetup of a Flux in an attempt, with the status that the changes set.
func setupInAttempt(flux *v1alpha1.Flux, attempt, restarts int32, changes ...func(*v1alpha1.FluxSetupStatus)) *v1alpha1.FluxSetup {
	setup := firstSetup(flux)
	setup.UID = "setup-uid"
	setup.Spec.Attempt, setup.Spec.Restarts = attempt, restarts
	setup.Status.Attempt = attempt
	for _, change := range changes {
		change(&setup.Status)
	}
	return setup
}

// attempted is the part of a plan's FluxSetup that the tests compare.
type attempted struct {
	attempt, restarts int32
	suspend           bool
}

func TestPlanOfAttempts(t *testing.T) {
	t.Parallel()
	type states struct {
		flux                   func(*v1alpha1.FluxSpec)
		wasSuspended           bool
		attempt, restarts, max int32
		report                 func(*v1alpha1.FluxSetupStatus)
	}
	setDeadlineExceeded := setFailed(v1alpha1.ReasonDeadlineExceeded, "too long", nil)
	stale := func(status *v1alpha1.FluxSetupStatus) {
		setCommandFailed(status)
		status.Attempt--
	}
	staleSuccess := func(status *v1alpha1.FluxSetupStatus) {
		setSucceeded(status)
		status.Attempt--
	}
	for name, test := range map[string]struct {
		states
		desired *attempted
		end     string
	}{
		"under way":                      {states: states{flux: isResumed, attempt: 1, report: setRunning}},
		"complete":                       {states: states{flux: isResumed, attempt: 1, report: setSucceeded}, end: v1alpha1.ReasonCommandSucceeded},
		"failed, no restart":             {states: states{flux: isResumed, attempt: 1, report: setCommandFailed}, end: v1alpha1.ReasonCommandFailed},
		"failed, a restart left":         {states{flux: isResumed, attempt: 1, max: 2, report: setCommandFailed}, &attempted{2, 1, false}, ""},
		"failed, the last restart left":  {states{flux: isResumed, attempt: 2, restarts: 1, max: 2, report: setCommandFailed}, &attempted{3, 2, false}, ""},
		"failed, all restarts used":      {states: states{flux: isResumed, attempt: 3, restarts: 2, max: 2, report: setCommandFailed}, end: v1alpha1.ReasonCommandFailed},
		"restarts count, not attempts":   {states{flux: isResumed, attempt: 9, restarts: 1, max: 2, report: setCommandFailed}, &attempted{10, 2, false}, ""},
		"deadline: never a restart":      {states: states{flux: isResumed, attempt: 1, max: 2, report: setDeadlineExceeded}, end: v1alpha1.ReasonDeadlineExceeded},
		"an older attempt failed":        {states: states{flux: isResumed, attempt: 2, restarts: 1, max: 2, report: stale}},
		"an older attempt is complete":   {states: states{flux: isResumed, attempt: 2, report: staleSuccess}},
		"resumed after the last":         {states: states{flux: isResumed, wasSuspended: true, attempt: 9999, report: setCleared}, end: v1alpha1.ReasonTooManyAttempts},
		"failed in the last":             {states: states{flux: isResumed, attempt: 9999, max: 1, report: setCommandFailed}, end: v1alpha1.ReasonTooManyAttempts},
		"complete in the last":           {states: states{flux: isResumed, attempt: 9999, report: setSucceeded}, end: v1alpha1.ReasonCommandSucceeded},
		"suspended in the last":          {states{flux: isSuspended, attempt: 9999, report: setRunning}, &attempted{9999, 0, true}, ""},
		"to be suspended":                {states{flux: isSuspended, attempt: 1, report: setRunning}, &attempted{1, 0, true}, ""},
		"suspended":                      {states: states{flux: isSuspended, wasSuspended: true, attempt: 1, report: setCleared}},
		"complete before it was":         {states: states{flux: isSuspended, wasSuspended: true, attempt: 1, report: setSucceeded}, end: v1alpha1.ReasonCommandSucceeded},
		"resumed":                        {states{flux: isResumed, wasSuspended: true, attempt: 4, restarts: 1, report: setCleared}, &attempted{5, 1, false}, ""},
		"resumed before it was observed": {states: states{flux: isResumed, wasSuspended: true, attempt: 2, report: stale}},
		"failed while to be suspended":   {states{flux: isSuspended, attempt: 1, max: 1, report: setCommandFailed}, &attempted{1, 0, true}, ""},
		"failed and suspended":           {states: states{flux: isSuspended, wasSuspended: true, attempt: 1, max: 1, report: setCommandFailed}},
		"failed, suspended, resumed":     {states{flux: isResumed, wasSuspended: true, attempt: 1, max: 1, report: setCommandFailed}, &attempted{2, 1, false}, ""},
		"failed for good, and suspended": {states: states{flux: isSuspended, wasSuspended: true, attempt: 2, restarts: 1, max: 1, report: setCommandFailed}, end: v1alpha1.ReasonCommandFailed},
		"complete, suspended, resumed":   {states: states{flux: isResumed, wasSuspended: true, attempt: 1, report: setSucceeded}, end: v1alpha1.ReasonCommandSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			flux := fluxWith(jobSpec(withRestarts(test.max), test.flux))
			setup := setupInAttempt(flux, test.attempt, test.restarts, test.report)
			setup.Spec.Suspend = test.wasSuspended
			setup.Spec.Launch = &v1alpha1.Launch{Attempt: test.attempt}

			plan := planFor(flux, setup, noon, DefaultBackOff)
			g.Expect(plan.requeueAfter).To(BeZero())
			g.Expect(plan.obstacle).To(BeNil())
			g.Expect(plan.confirmed(flux)).To(Equal(test.desired == nil && test.end == ""), "the cache may be stale")
			if test.end == "" {
				g.Expect(plan.end).To(BeNil())
			} else {
				g.Expect(plan.end).NotTo(BeNil())
				g.Expect(plan.end.reason).To(Equal(test.end))
			}
			if test.desired == nil {
				g.Expect(plan.desired).To(BeNil())
				return
			}
			g.Expect(plan.desired).NotTo(BeNil())
			next := plan.desired.Spec
			g.Expect(attempted{next.Attempt, next.Restarts, next.Suspend}).To(Equal(*test.desired))
			g.Expect(next.Launch).To(BeNil(), "it is not ours")
			g.Expect(plan.desired.UID).To(Equal(setup.UID))
		})
	}
}

func TestPlanByOwnership(t *testing.T) {
	t.Parallel()
	known := &v1alpha1.SetupReference{Name: "job", UID: "setup-uid"}
	for name, test := range map[string]struct {
		ref       *v1alpha1.SetupReference
		setup     func(*v1alpha1.FluxSetup) // nil: there is none
		ownership ownership
		obstacle  string
		lost      bool
		applies   bool
	}{
		"none yet":      {ownership: setupAbsent, applies: true},
		"none any more": {ref: known, ownership: setupAbsent, obstacle: v1alpha1.ReasonSetupLost, lost: true},
		"ours":          {ref: known, setup: func(*v1alpha1.FluxSetup) {}, ownership: setupOwned},
		"ours, and a crash before that was written": {setup: func(*v1alpha1.FluxSetup) {}, ownership: setupOwned},
		"ours by its owner, of another uid": {
			ref: known, setup: func(s *v1alpha1.FluxSetup) { s.UID = "other" },
			ownership: setupNotOwned, obstacle: v1alpha1.ReasonSetupLost, lost: true,
		},
		"without an owner": {
			setup: func(s *v1alpha1.FluxSetup) { s.OwnerReferences = nil }, ownership: setupNotOwned, obstacle: v1alpha1.ReasonNameConflict,
		},
		"of another kind": {
			setup: func(s *v1alpha1.FluxSetup) { s.OwnerReferences[0].Kind, s.OwnerReferences[0].UID = "Pod", "x" }, ownership: setupNotOwned, obstacle: v1alpha1.ReasonNameConflict,
		},
		"of another Flux": {
			setup: func(s *v1alpha1.FluxSetup) { s.OwnerReferences[0].Name, s.OwnerReferences[0].UID = "other", "x" }, ownership: setupNotOwned, obstacle: v1alpha1.ReasonNameConflict,
		},
		"of the Flux of this name before": {
			setup: func(s *v1alpha1.FluxSetup) { s.OwnerReferences[0].UID = "earlier" }, ownership: setupOfPredecessor, obstacle: v1alpha1.ReasonStarting,
		},
		"not owned, in place of ours": {
			ref: known, setup: func(s *v1alpha1.FluxSetup) { s.OwnerReferences, s.UID = nil, "other" },
			ownership: setupNotOwned, obstacle: v1alpha1.ReasonSetupLost, lost: true,
		},
		"ours, its owner removed": {
			ref: known, setup: func(s *v1alpha1.FluxSetup) { s.OwnerReferences = nil }, ownership: setupOwned, applies: true,
		},
		"ours, with another controller": {
			ref: known, setup: func(s *v1alpha1.FluxSetup) { s.OwnerReferences[0].Kind, s.OwnerReferences[0].UID = "Pod", "x" },
			ownership: setupOwned, applies: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			flux := fluxWith(jobSpec())
			flux.Status.SetupRef = test.ref
			var setup *v1alpha1.FluxSetup
			if test.setup != nil {
				setup = setupInAttempt(flux, 1, 0, setRunning)
				test.setup(setup)
			}
			plan := planFor(flux, setup, noon, DefaultBackOff)
			g.Expect(plan.ownership).To(Equal(test.ownership))
			g.Expect(plan.desired != nil).To(Equal(test.applies))
			if test.obstacle == "" {
				g.Expect(plan.obstacle).To(BeNil())
			} else {
				g.Expect(plan.obstacle.reason).To(Equal(test.obstacle))
			}
			if test.lost {
				g.Expect(plan.end.condition).To(Equal(v1alpha1.ConditionFailed))
				g.Expect(plan.end.reason).To(Equal(v1alpha1.ReasonSetupLost))
			} else {
				g.Expect(plan.end).To(BeNil())
			}
		})
	}
}

func TestPlanOfAFluxSetupThatIsDeleted(t *testing.T) {
	t.Parallel()
	flux := fluxWith(jobSpec(withRestarts(3), isSuspended))
	for name, test := range map[string]struct {
		report func(*v1alpha1.FluxSetupStatus)
		end    string
	}{
		"running":                {setRunning, v1alpha1.ReasonSetupLost},
		"failed, a restart left": {setCommandFailed, v1alpha1.ReasonSetupLost},
		"complete":               {setSucceeded, v1alpha1.ReasonCommandSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			setup := setupInAttempt(flux, 1, 0, test.report)
			setup.Spec.Suspend = false
			setup.DeletionTimestamp = &metav1.Time{Time: noon}
			plan := planFor(flux, setup, noon, DefaultBackOff)
			g.Expect(plan.desired).To(BeNil(), "it is not written to")
			g.Expect(plan.end).NotTo(BeNil())
			g.Expect(plan.end.reason).To(Equal(test.end))
		})
	}
}

func TestPlanFollowsWhatMayBeChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1alpha1.FluxSpec){
		"startupTimeoutSeconds":     func(s *v1alpha1.FluxSpec) { s.StartupTimeoutSeconds = 7 },
		"activeDeadlineSeconds":     func(s *v1alpha1.FluxSpec) { s.ActiveDeadlineSeconds = new(int64(60)) },
		"activeDeadlineSeconds off": func(s *v1alpha1.FluxSpec) { s.ActiveDeadlineSeconds = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			flux := fluxWith(jobSpec(func(s *v1alpha1.FluxSpec) { s.ActiveDeadlineSeconds = new(int64(30)) }))
			setup := setupInAttempt(flux, 2, 1, setRunning)
			g.Expect(planFor(flux, setup, noon, DefaultBackOff).desired).To(BeNil())
			change(&flux.Spec)
			next := planFor(flux, setup, noon, DefaultBackOff).desired
			g.Expect(next).NotTo(BeNil())
			g.Expect(next.Spec.StartupTimeoutSeconds).To(Equal(firstSetup(flux).Spec.StartupTimeoutSeconds))
			g.Expect(next.Spec.ActiveDeadlineSeconds).To(Equal(flux.Spec.ActiveDeadlineSeconds))
			g.Expect(next.Spec.Attempt).To(Equal(int32(2)), "it is no new attempt")
		})
	}
}

func TestPlanAfterTheEnd(t *testing.T) {
	t.Parallel()
	over := func(kind string, ttl *int32) *v1alpha1.Flux {
		flux := fluxWith(jobSpec(withRestarts(5)))
		flux.Spec.TTLSecondsAfterFinished = ttl
		flux.Status.SetupRef = &v1alpha1.SetupReference{Name: "job", UID: "setup-uid"}
		flux.Status.CompletionTime = &metav1.Time{Time: noon}
		flux.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
		return flux
	}
	for _, kind := range []string{v1alpha1.ConditionComplete, v1alpha1.ConditionFailed} {
		for name, test := range map[string]struct {
			ttl     *int32
			after   time.Duration
			setup   func(*v1alpha1.FluxSetup) // nil: there is none
			requeue time.Duration
			expires bool
		}{
			"no TTL":              {setup: func(*v1alpha1.FluxSetup) {}},
			"TTL 0":               {ttl: new(int32(0)), setup: func(*v1alpha1.FluxSetup) {}, expires: true},
			"TTL not expired":     {ttl: new(int32(60)), after: 20 * time.Second, setup: func(*v1alpha1.FluxSetup) {}, requeue: 40 * time.Second},
			"TTL expired":         {ttl: new(int32(60)), after: time.Minute, setup: func(*v1alpha1.FluxSetup) {}, expires: true},
			"suspended already":   {ttl: new(int32(60)), after: time.Hour, setup: func(s *v1alpha1.FluxSetup) { s.Spec.Suspend = true }},
			"deleted by a user":   {ttl: new(int32(60)), after: time.Hour},
			"being deleted":       {ttl: new(int32(60)), after: time.Hour, setup: func(s *v1alpha1.FluxSetup) { s.DeletionTimestamp = &metav1.Time{Time: noon} }},
			"another of the name": {ttl: new(int32(60)), after: time.Hour, setup: func(s *v1alpha1.FluxSetup) { s.UID = types.UID("other") }},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				flux := over(kind, test.ttl)
				var setup *v1alpha1.FluxSetup
				if test.setup != nil {
					setup = setupInAttempt(flux, 2, 1, setCommandFailed)
					test.setup(setup)
				}
				plan := planFor(flux, setup, noon.Add(test.after), DefaultBackOff)
				g.Expect(plan.end).To(BeNil(), "it is written already")
				g.Expect(plan.requeueAfter).To(Equal(test.requeue))
				g.Expect(plan.desired != nil).To(Equal(test.expires))
				if test.expires {
					next := plan.desired.Spec
					g.Expect(attempted{next.Attempt, next.Restarts, next.Suspend}).To(Equal(attempted{2, 1, true}))
				}
			})
		}
	}
}
