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

// setupSaying is the FluxSetup of a Flux, in its attempt-th attempt, which says what it is told to say.
func setupSaying(flux *v1alpha1.Flux, attempt, restarts int32, says ...func(*v1alpha1.FluxSetupStatus)) *v1alpha1.FluxSetup {
	setup := firstSetup(flux)
	setup.UID = "setup-uid"
	setup.Spec.Attempt, setup.Spec.Restarts = attempt, restarts
	setup.Status.Attempt = attempt
	for _, say := range says {
		say(&setup.Status)
	}
	return setup
}

// attempted is a plan's FluxSetup, in short.
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
		says                   func(*v1alpha1.FluxSetupStatus)
	}
	saysDeadline := saysFailed(v1alpha1.ReasonDeadlineExceeded, "too long", nil)
	stale := func(status *v1alpha1.FluxSetupStatus) {
		saysCommandFailed(status)
		status.Attempt--
	}
	staleSuccess := func(status *v1alpha1.FluxSetupStatus) {
		saysSucceeded(status)
		status.Attempt--
	}
	for name, test := range map[string]struct {
		states
		apply *attempted
		end   string
	}{
		"under way":                       {states: states{flux: isResumed, attempt: 1, says: saysRunning}},
		"complete":                        {states: states{flux: isResumed, attempt: 1, says: saysSucceeded}, end: v1alpha1.ReasonCommandSucceeded},
		"failed, no restart":              {states: states{flux: isResumed, attempt: 1, says: saysCommandFailed}, end: v1alpha1.ReasonCommandFailed},
		"failed, a restart left":          {states{flux: isResumed, attempt: 1, max: 2, says: saysCommandFailed}, &attempted{2, 1, false}, ""},
		"failed, the last restart left":   {states{flux: isResumed, attempt: 2, restarts: 1, max: 2, says: saysCommandFailed}, &attempted{3, 2, false}, ""},
		"failed, all restarts used":       {states: states{flux: isResumed, attempt: 3, restarts: 2, max: 2, says: saysCommandFailed}, end: v1alpha1.ReasonCommandFailed},
		"restarts count, not attempts":    {states{flux: isResumed, attempt: 9, restarts: 1, max: 2, says: saysCommandFailed}, &attempted{10, 2, false}, ""},
		"deadline: never a restart":       {states: states{flux: isResumed, attempt: 1, max: 2, says: saysDeadline}, end: v1alpha1.ReasonDeadlineExceeded},
		"an older attempt failed":         {states: states{flux: isResumed, attempt: 2, restarts: 1, max: 2, says: stale}},
		"an older attempt is complete":    {states: states{flux: isResumed, attempt: 2, says: staleSuccess}},
		"resumed after the last":          {states: states{flux: isResumed, wasSuspended: true, attempt: 9999, says: saysNothingLeft}, end: v1alpha1.ReasonTooManyAttempts},
		"failed in the last":              {states: states{flux: isResumed, attempt: 9999, max: 1, says: saysCommandFailed}, end: v1alpha1.ReasonTooManyAttempts},
		"complete in the last":            {states: states{flux: isResumed, attempt: 9999, says: saysSucceeded}, end: v1alpha1.ReasonCommandSucceeded},
		"suspended in the last":           {states{flux: isSuspended, attempt: 9999, says: saysRunning}, &attempted{9999, 0, true}, ""},
		"to be suspended":                 {states{flux: isSuspended, attempt: 1, says: saysRunning}, &attempted{1, 0, true}, ""},
		"suspended":                       {states: states{flux: isSuspended, wasSuspended: true, attempt: 1, says: saysNothingLeft}},
		"complete before it was":          {states: states{flux: isSuspended, wasSuspended: true, attempt: 1, says: saysSucceeded}, end: v1alpha1.ReasonCommandSucceeded},
		"resumed":                         {states{flux: isResumed, wasSuspended: true, attempt: 4, restarts: 1, says: saysNothingLeft}, &attempted{5, 1, false}, ""},
		"resumed before it was looked at": {states{flux: isResumed, wasSuspended: true, attempt: 2, says: stale}, &attempted{3, 0, false}, ""},
		"failed while to be suspended":    {states{flux: isSuspended, attempt: 1, max: 1, says: saysCommandFailed}, &attempted{1, 0, true}, ""},
		"failed and suspended":            {states: states{flux: isSuspended, wasSuspended: true, attempt: 1, max: 1, says: saysCommandFailed}},
		"failed, suspended, resumed":      {states{flux: isResumed, wasSuspended: true, attempt: 1, max: 1, says: saysCommandFailed}, &attempted{2, 1, false}, ""},
		"failed for good, and suspended":  {states: states{flux: isSuspended, wasSuspended: true, attempt: 2, restarts: 1, max: 1, says: saysCommandFailed}, end: v1alpha1.ReasonCommandFailed},
		"complete, suspended, resumed":    {states: states{flux: isResumed, wasSuspended: true, attempt: 1, says: saysSucceeded}, end: v1alpha1.ReasonCommandSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			flux := fluxWith(jobSpec(withRestarts(test.max), test.flux))
			setup := setupSaying(flux, test.attempt, test.restarts, test.says)
			setup.Spec.Suspend = test.wasSuspended
			setup.Spec.Launch = &v1alpha1.Launch{Attempt: test.attempt}

			plan := planFor(flux, setup, noon)
			g.Expect(plan.requeueAfter).To(BeZero())
			g.Expect(plan.obstacle).To(BeNil())
			g.Expect(plan.confirmed(flux)).To(Equal(test.apply == nil && test.end == ""), "the cache may be stale")
			if test.end == "" {
				g.Expect(plan.end).To(BeNil())
			} else {
				g.Expect(plan.end).NotTo(BeNil())
				g.Expect(plan.end.reason).To(Equal(test.end))
			}
			if test.apply == nil {
				g.Expect(plan.apply).To(BeNil())
				return
			}
			g.Expect(plan.apply).NotTo(BeNil())
			next := plan.apply.Spec
			g.Expect(attempted{next.Attempt, next.Restarts, next.Suspend}).To(Equal(*test.apply))
			g.Expect(next.Launch).To(BeNil(), "it is not ours")
			g.Expect(plan.apply.UID).To(Equal(setup.UID))
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
		"a foreign one, where ours was": {
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
				setup = setupSaying(flux, 1, 0, saysRunning)
				test.setup(setup)
			}
			plan := planFor(flux, setup, noon)
			g.Expect(plan.ownership).To(Equal(test.ownership))
			g.Expect(plan.apply != nil).To(Equal(test.applies))
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

func TestPlanOfAFluxSetupThatIsGoing(t *testing.T) {
	t.Parallel()
	going := func(s *v1alpha1.FluxSetup) { s.DeletionTimestamp = &metav1.Time{Time: noon} }
	flux := fluxWith(jobSpec(withRestarts(3), isSuspended))
	for name, test := range map[string]struct {
		says func(*v1alpha1.FluxSetupStatus)
		end  bool
	}{
		"running":                {saysRunning, false},
		"failed, a restart left": {saysCommandFailed, false},
		"complete":               {saysSucceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			setup := setupSaying(flux, 1, 0, test.says)
			setup.Spec.Suspend = false
			going(setup)
			plan := planFor(flux, setup, noon)
			g.Expect(plan.apply).To(BeNil(), "it is not written to")
			g.Expect(plan.end != nil).To(Equal(test.end))
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
			setup := setupSaying(flux, 2, 1, saysRunning)
			g.Expect(planFor(flux, setup, noon).apply).To(BeNil())
			change(&flux.Spec)
			next := planFor(flux, setup, noon).apply
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
			ttl   *int32
			after time.Duration
			setup func(*v1alpha1.FluxSetup) // nil: there is none
			wake  time.Duration
			goes  bool
		}{
			"no TTL":              {setup: func(*v1alpha1.FluxSetup) {}},
			"TTL 0":               {ttl: new(int32(0)), setup: func(*v1alpha1.FluxSetup) {}, goes: true},
			"TTL to come":         {ttl: new(int32(60)), after: 20 * time.Second, setup: func(*v1alpha1.FluxSetup) {}, wake: 40 * time.Second},
			"TTL over":            {ttl: new(int32(60)), after: time.Minute, setup: func(*v1alpha1.FluxSetup) {}, goes: true},
			"gone already":        {ttl: new(int32(60)), after: time.Hour, setup: func(s *v1alpha1.FluxSetup) { s.Spec.Suspend = true }},
			"deleted by somebody": {ttl: new(int32(60)), after: time.Hour},
			"going":               {ttl: new(int32(60)), after: time.Hour, setup: func(s *v1alpha1.FluxSetup) { s.DeletionTimestamp = &metav1.Time{Time: noon} }},
			"another of the name": {ttl: new(int32(60)), after: time.Hour, setup: func(s *v1alpha1.FluxSetup) { s.UID = types.UID("other") }},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				flux := over(kind, test.ttl)
				var setup *v1alpha1.FluxSetup
				if test.setup != nil {
					setup = setupSaying(flux, 2, 1, saysCommandFailed)
					test.setup(setup)
				}
				plan := planFor(flux, setup, noon.Add(test.after))
				g.Expect(plan.end).To(BeNil(), "it is written already")
				g.Expect(plan.requeueAfter).To(Equal(test.wake))
				g.Expect(plan.apply != nil).To(Equal(test.goes))
				if test.goes {
					next := plan.apply.Spec
					g.Expect(attempted{next.Attempt, next.Restarts, next.Suspend}).To(Equal(attempted{2, 1, true}))
				}
			})
		}
	}
}
