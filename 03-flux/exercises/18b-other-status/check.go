// Package otherstatus is exercise 18b: what a controller may conclude from the status of another one.
package otherstatus

import (
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry func(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) metav1.Condition

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
	// current is the generation of each FluxSetup.
	current = 3
)

// Check calls the reader's function.
func Check(t *check.T, work check.Work[Entry]) {
	c := cases{entry: work.Entry}
	t.Behaviour("a FluxSetup that is accepted and configured is ready", func(b *check.B) {
		c.expect(b, setup(), yes, "Configured", "")
	})
	t.Behaviour("without a FluxSetup nothing is ready", func(b *check.B) {
		c.expect(b, nil, no, "SetupMissing", "")
	})
	t.Behaviour("the FluxSetup of another Flux is not its own", func(b *check.B) {
		other := setup()
		other.OwnerReferences[0].UID = "the-one-before"
		c.expect(b, other, no, "NotOwned", "")
		other.OwnerReferences[0] = metav1.OwnerReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Flux", Name: "bees", UID: flux().UID,
		}
		c.expect(b, other, no, "NotOwned", "")
		other.OwnerReferences = nil
		c.expect(b, other, no, "NotOwned", "")
	})
	t.Behaviour("a FluxSetup that is being deleted is not ready", func(b *check.B) {
		deleting := setup()
		deleting.DeletionTimestamp = new(metav1.Now())
		c.expect(b, deleting, no, "SetupDeleting", "")
	})
	checkPending(t, c)
	checkLifted(t, c)
	checkRows(t, c)
	t.Behaviour("the arguments are not changed", func(b *check.B) {
		f, s := flux(), setup()
		report(s, v1alpha1.ConditionConfigured, no, "NotYet", "later", current)
		before, setupBefore := f.DeepCopy(), s.DeepCopy()
		c.entry(f, s)
		if !apiequality.Semantic.DeepEqual(f, before) || !apiequality.Semantic.DeepEqual(s, setupBefore) {
			b.Fatalf("the Flux or the FluxSetup is another one after the call")
		}
	})
}

// checkPending has reports that are not there, or are about an earlier spec.
func checkPending(t *check.T, c cases) {
	t.Behaviour("without a report it is pending", func(b *check.B) {
		for _, missing := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured} {
			s := setup()
			apimeta.RemoveStatusCondition(&s.Status.Conditions, missing)
			c.expect(b, s, metav1.ConditionUnknown, "SetupPending", "")
		}
	})
	t.Behaviour("a report about another generation is not believed, whatever it says", func(b *check.B) {
		for _, old := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured} {
			for _, status := range []metav1.ConditionStatus{yes, no} {
				// A FluxSetup that was restored from a backup begins to count anew.
				for _, generation := range []int64{current - 1, current + 1} {
					s := setup()
					report(s, old, status, "OldReason", "an old message", generation)
					c.expect(b, s, metav1.ConditionUnknown, "SetupPending", "")
				}
			}
		}
	})
	t.Behaviour("what one report says counts only if the other one is current, too", func(b *check.B) {
		names := []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured}
		for i, name := range names {
			for _, old := range []bool{true, false} {
				s := setup()
				report(s, name, no, "TooMany", "too many nodes", current)
				if old {
					report(s, names[1-i], yes, "OldReason", "an old message", current-1)
				} else {
					apimeta.RemoveStatusCondition(&s.Status.Conditions, names[1-i])
				}
				c.expect(b, s, metav1.ConditionUnknown, "SetupPending", "")
			}
		}
	})
}

// checkLifted has reports that are not True.
func checkLifted(t *check.T, c cases) {
	t.Behaviour("a report that is not True is lifted, with reason and message", func(b *check.B) {
		for _, name := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured} {
			for _, status := range []metav1.ConditionStatus{no, metav1.ConditionUnknown} {
				s := setup()
				report(s, name, status, "Quota"+name, "the quota is used up", current)
				c.expect(b, s, status, "Quota"+name, "the quota is used up")
			}
		}
	})
	t.Behaviour("if neither is True, Accepted is the one that counts", func(b *check.B) {
		s := setup()
		report(s, v1alpha1.ConditionConfigured, no, "NotYet", "later", current)
		report(s, v1alpha1.ConditionAccepted, no, "TooMany", "too many nodes", current)
		c.expect(b, s, no, "TooMany", "too many nodes")
	})
}

// checkRows has FluxSetups to which several rows of the table apply.
func checkRows(t *check.T, c cases) {
	t.Behaviour("the first row that applies counts", func(b *check.B) {
		deleting := setup()
		deleting.DeletionTimestamp = new(metav1.Now())
		report(deleting, v1alpha1.ConditionConfigured, no, "OldReason", "an old message", current-1)
		c.expect(b, deleting, no, "SetupDeleting", "")
		deleting.OwnerReferences[0].UID = "the-one-before"
		c.expect(b, deleting, no, "NotOwned", "")
	})
}

func flux() *v1alpha1.Flux {
	return &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "bees", UID: "flux-1", Generation: 7}}
}

// setup returns a FluxSetup that is ready.
func setup() *v1alpha1.FluxSetup {
	s := &v1alpha1.FluxSetup{ObjectMeta: metav1.ObjectMeta{Name: "bees", Generation: current}}
	s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(flux(), v1alpha1.SchemeGroupVersion.WithKind("Flux"))}
	report(s, v1alpha1.ConditionAccepted, yes, "Valid", "", current)
	report(s, v1alpha1.ConditionConfigured, yes, "AllSet", "", current)
	return s
}

// report writes a condition of a FluxSetup.
func report(s *v1alpha1.FluxSetup, name string, status metav1.ConditionStatus, reason, message string, generation int64) {
	apimeta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

type cases struct{ entry Entry }

// expect calls the function, also with Fluxes whose own status says something else.
func (c cases) expect(b *check.B, s *v1alpha1.FluxSetup, status metav1.ConditionStatus, reason, message string) {
	for _, own := range []metav1.ConditionStatus{"", yes, no} {
		f := flux()
		text := "no condition"
		if own != "" {
			apimeta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionSetupReady, Status: own, Reason: "Before", ObservedGeneration: f.Generation,
			})
			text = fmt.Sprintf("the condition SetupReady=%s", own)
		}
		got := c.entry(f, s)
		if got.Status != status || got.Reason != reason || message != "" && got.Message != message {
			b.Event("the Flux has %s in its own status", text)
			b.Event("the FluxSetup is %s", describe(s))
			b.Fatalf("the condition is %s, %q, %q; it should be %s, %q, %q", got.Status, got.Reason, got.Message, status, reason, message)
		}
		expectOfFlux(b, got)
	}
}

// expectOfFlux looks at what is the same in each condition.
func expectOfFlux(b *check.B, got metav1.Condition) {
	switch {
	case got.Type != v1alpha1.ConditionSetupReady:
		b.Fatalf("the type of the condition is %q, and should be %s", got.Type, v1alpha1.ConditionSetupReady)
	case got.ObservedGeneration != flux().Generation:
		b.Fatalf("observedGeneration is %d, and should be %d, that of the Flux", got.ObservedGeneration, flux().Generation)
	case !got.LastTransitionTime.IsZero():
		b.Fatalf("lastTransitionTime is set: that is for the caller to do")
	}
}

func describe(s *v1alpha1.FluxSetup) string {
	if s == nil {
		return "nil"
	}
	text := []string{fmt.Sprintf("of generation %d", s.Generation)}
	if s.DeletionTimestamp != nil {
		text = append(text, "being deleted")
	}
	if !metav1.IsControlledBy(s, flux()) {
		text = append(text, "not controlled by the Flux")
	}
	for _, c := range s.Status.Conditions {
		text = append(text, fmt.Sprintf("%s=%s, %s, observedGeneration %d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
	}
	return strings.Join(text, "; ")
}
