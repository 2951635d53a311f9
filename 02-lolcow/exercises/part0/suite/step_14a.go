package suite

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	})
	s.reconciles("Ready is False with the reason ScaledToZero where no pod is desired and none is left", func(e *env) {
		e.serve()
		e.change("cow", fields{"replicas": int64(0)})
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, rollingOut)
		e.rollOut(e.deployment("Moo"))
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, scaledToZero)
	})
	s.reconciles("Ready is False with the reason ProgressDeadlineExceeded where the Deployment says so", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.stall(e.deployment("Moo"))
		e.settle("cow")
		e.expectReady(metav1.ConditionFalse, deadline)
	})
	s.reconciles("lastTransitionTime changes with the status of the condition, and only then", (*env).transitionTime)
	s.reconciles("a condition that another controller has added stays", func(e *env) {
		e.create("cow", fields{"greeting": "Moo"})
		e.settle("cow")
		e.addCondition("cow", "Fed")
		e.rollOut(e.deployment("Moo"))
		e.settle("cow")
		e.expectReady(metav1.ConditionTrue, serving)
		if e.condition("cow", "Fed").Reason != "Hay" {
			e.Fatalf("the condition Fed, of another controller, is lost")
		}
	})
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

// serve creates the Lolcow cow with the greeting Moo, and brings it to the state in which it serves that.
func (e *env) serve() {
	e.create("cow", fields{"greeting": "Moo"})
	e.settle("cow")
	e.rollOut(e.deployment("Moo"))
	e.settle("cow")
	e.expectReady(metav1.ConditionTrue, serving)
}

// stall does what the Deployment controller does when a rollout makes no progress.
func (e *env) stall(deployment *appsv1.Deployment) {
	e.Event("the Deployment controller: the rollout makes no progress")
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: deadline,
			Message: "ReplicaSet has timed out progressing.",
		}},
	}
	e.must(e.client.Status().Update(e.Context(), deployment), "simulating the Deployment controller")
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
func (e *env) addCondition(name, conditionType string) {
	e.Event("another controller: the condition %s", conditionType)
	lolcow := e.lolcow(name)
	list, _, err := unstructured.NestedSlice(lolcow.Object, "status", "conditions")
	e.must(err, "reading status.conditions")
	list = append(list, map[string]any{
		"type": conditionType, "status": "True", "reason": "Hay", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	})
	e.must(unstructured.SetNestedSlice(lolcow.Object, list, "status", "conditions"), "changing status.conditions")
	e.must(e.client.Status().Update(e.Context(), lolcow), "changing status.conditions")
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
