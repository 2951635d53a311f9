package suite

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reasons of the condition Ready that the steps ask for.
const (
	rollingOut   = "RollingOut"
	serving      = "Serving"
	scaledToZero = "ScaledToZero"
	deadline     = "ProgressDeadlineExceeded"
	conflict     = "PortConflict"
)

// conditions are the behaviours of step 14a.
func (s *suite) conditions() {
	s.reconciles("Ready is False with the reason RollingOut until all pods are available, then True with the reason Serving", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, rollingOut)
		e.rollOut(e.deployment("Moo"))
		e.settle("cow")
		e.expectReady(metav1.ConditionTrue, serving)
	})
	s.reconciles("the status of a Deployment counts only for the generation that it was written for", func(e *env) {
		e.serve()
		e.change("cow", fields{"greeting": "Baa"})
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, rollingOut)
		e.stall(e.deployment("Baa"))
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, deadline)
		e.change("cow", fields{"greeting": "Good night"})
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, rollingOut)
	})
	s.reconciles("Ready is False with the reason ScaledToZero where no pod is desired and none is left", func(e *env) {
		e.serve()
		e.change("cow", fields{"replicas": int64(0)})
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, rollingOut)
		e.simulate("one pod is left", e.deployment("Moo"), pods{1, 1, 1, 1}, replacing)
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, rollingOut)
		e.rollOut(e.deployment("Moo"))
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, scaledToZero)
	})
	s.staleNumbers()
	s.reconciles("Ready is False with the reason ProgressDeadlineExceeded where the Deployment says so", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.stall(e.deployment("Moo"))
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, deadline)
	})
	s.reconciles("lastTransitionTime changes with the status of the condition, and only then", (*env).transitionTime)
	s.otherConditions()
	s.reconciles("a reconciliation writes the status at most once, and not at all if nothing has changed", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		before := e.wire.count()
		_, err := e.reconcile("cow")
		e.must(err, "Reconcile returns an error")
		if n := e.statusWrites(before); n > 1 {
			e.Errorf("one reconciliation writes the status %d times", n)
		}
		e.settle("cow")
		e.quiet()
	})
}

// otherConditions are those of other controllers.
func (s *suite) otherConditions() {
	s.reconciles("a condition that another controller has added stays", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.must(e.addCondition("cow", "Fed"), "adding a condition")
		e.rollOut(e.deployment("Moo"))
		e.settle("cow")
		e.expectReady(metav1.ConditionTrue, serving)
		if e.condition("cow", "Fed").Reason != "Hay" {
			e.Fatalf("the condition Fed, of another controller, is lost")
		}
	})
	s.reconciles("a condition that another controller adds between the read and the write stays", (*env).lateCondition)
}

// staleNumbers are numbers of pods that say less than they seem to.
func (s *suite) staleNumbers() {
	s.reconciles("what Reconcile has read before it changed the Deployment does not count afterwards", func(e *env) {
		e.serve()
		e.change("cow", fields{"greeting": "Baa"})
		_, _ = e.reconcile("cow")
		if e.saysReady() {
			e.Fatalf("the greeting has just been changed, and Ready is True for that: the status of the Deployment was read before the change")
		}
	})
	s.reconciles("old pods do not count: while one is left, Ready is RollingOut, or ProgressDeadlineExceeded", (*env).oldPods)
	s.reconciles("a pod that is ready, and not yet available, does not count", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.simulate("the pod is ready for less than minReadySeconds", e.deployment("Moo"), pods{replicas: 1, updated: 1, ready: 1}, replaced)
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, rollingOut)
	})
}

// serve creates the Lolcow cow with the greeting Moo, and brings it to the state in which it serves that.
func (e *env) serve() { e.serveSpec(fields{"greeting": "Moo"}) }

// serveAt does the same for a Lolcow with a port.
func (e *env) serveAt(port int64) { e.serveSpec(fields{"greeting": "Moo", "port": port}) }

func (e *env) serveSpec(spec fields) {
	e.create("cow", spec)
	e.settle("cow")
	e.rollOut(e.deployment("Moo"))
	e.settle("cow")
	e.expectReady(metav1.ConditionTrue, serving)
}

// saysReady reports whether Ready is True for the present generation of the Lolcow cow.
func (e *env) saysReady() bool {
	ready := e.condition("cow", "Ready")
	return ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == e.lolcow("cow").GetGeneration()
}

// oldPods has as many pods available as are desired, and they are old ones.
func (e *env) oldPods() {
	e.serve()
	e.change("cow", fields{"greeting": "Baa"})
	e.settle("cow")
	e.simulate("the old pod is available, and there is no new one", e.deployment("Baa"), pods{1, 0, 1, 1}, replacing)
	e.settle("cow")
	e.expectReady(metav1.ConditionFalse, rollingOut)
	e.simulate("the old pod is available, the new one is not", e.deployment("Baa"), pods{2, 1, 1, 1}, replacing)
	e.settle("cow")
	e.expectReady(metav1.ConditionFalse, rollingOut)
	e.simulate("so it is still, and the rollout makes no progress", e.deployment("Baa"), pods{2, 1, 1, 1}, deadline)
	e.settle("cow")
	e.expectReady(metav1.ConditionFalse, deadline)
}

// lateCondition has another controller add its condition when the operator has read the Lolcow.
func (e *env) lateCondition() {
	e.create("cow", fields{"greeting": "Moo"})
	var added error
	done := false
	e.wire.interfere(func(r request) {
		if r.resource == "lolcows/status" && slices.Contains(writeVerbs, r.verb) && !done {
			done, added = true, e.addCondition("cow", "Fed")
		}
	})
	e.attempt()
	e.must(added, "adding a condition")
	e.wire.replace(nil)
	e.settle("cow")
	e.expectReady(metav1.ConditionFalse, rollingOut)
	if e.condition("cow", "Fed").Reason != "Hay" {
		e.Fatalf("the condition Fed, which another controller has added meanwhile, is lost: the list was written as it had been read")
	}
}

// backdate changes the time of the last transition of all conditions.
func (e *env) backdate(name string, to metav1.Time) {
	lolcow := e.lolcow(name)
	list, _, err := unstructured.NestedSlice(lolcow.Object, "status", "conditions")
	e.must(err, "reading status.conditions")
	for _, one := range list {
		one.(map[string]any)["lastTransitionTime"] = to.UTC().Format("2006-01-02T15:04:05Z")
	}
	e.must(unstructured.SetNestedSlice(lolcow.Object, list, "status", "conditions"), "changing status.conditions")
	e.must(e.client.Status().Update(e.Context(), lolcow), "changing status.conditions")
}

// addCondition does what another controller does.
func (e *env) addCondition(name, conditionType string) error {
	e.Event("another controller: the condition %s", conditionType)
	lolcow := e.newLolcow(name, nil)
	if err := e.client.Get(e.Context(), e.key(name), lolcow); err != nil {
		return err
	}
	list, _, err := unstructured.NestedSlice(lolcow.Object, "status", "conditions")
	if err != nil {
		return err
	}
	list = append(list, map[string]any{
		"type": conditionType, "status": "True", "reason": "Hay", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	})
	if err := unstructured.SetNestedSlice(lolcow.Object, list, "status", "conditions"); err != nil {
		return err
	}
	return e.client.Status().Update(e.Context(), lolcow)
}

// statusWrites counts the writes of the status of a Lolcow.
func (e *env) statusWrites(from int) int {
	n := 0
	for _, one := range e.wire.writes(from) {
		if one.resource == "lolcows/status" {
			n++
		}
	}
	return n
}

// transitionTime changes the time in the condition, and sees which changes of the Lolcow change it.
func (e *env) transitionTime() {
	e.create("cow", fields{"greeting": "Moo"})
	e.settle("cow")
	longAgo := metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e.backdate("cow", longAgo)
	e.change("cow", fields{"greeting": "Baa"})
	e.settle("cow")
	if ready := e.expectReady(metav1.ConditionFalse, rollingOut); !ready.LastTransitionTime.Equal(&longAgo) {
		e.Fatalf("Ready was False before, and is False; lastTransitionTime has changed")
	}
	e.rollOut(e.deployment("Baa"))
	e.settle("cow")
	if ready := e.expectReady(metav1.ConditionTrue, serving); ready.LastTransitionTime.Equal(&longAgo) {
		e.Fatalf("Ready was False, and is True now; lastTransitionTime has not changed")
	}
}
