package suite

import (
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// events are the behaviours of step 16b.
func (s *suite) events() {
	s.reconciles("a port conflict is announced by one Event, however often it is tried again, and also after a restart", func(e *env) {
		e.occupy()
		e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
		for range 10 {
			_, _ = e.reconcile("cow")
		}
		e.Event("the operator restarts")
		e.restart()
		_, _ = e.reconcile("cow")
		_, _ = e.reconcile("cow")
		one := e.expectAnnounced(conflict, corev1.EventTypeWarning)
		if ready := e.condition("cow", "Ready"); one.note != ready.Message {
			e.Errorf("the Event does not have the message of the condition: %q is not %q", one.note, ready.Message)
		}
		if one.action != action {
			e.Errorf("the action of the Event is %s; expected %s", text(one.action), action)
		}
	})
	s.reconciles("a Lolcow that is created again under the same name is announced again", (*env).createdAgain)
	s.reconciles("another message of the same reason is not announced", (*env).otherMessage)
	s.reconciles("a change of the spec that leaves the reason as it is, is not announced", func(e *env) {
		e.occupy()
		e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
		e.attempt()
		e.change("cow", fields{"greeting": "Baa"})
		e.attempt()
		e.expectReady(metav1.ConditionFalse, conflict)
		e.expectAnnounced(conflict, corev1.EventTypeWarning)
	})
	s.reconciles("an Event is sent after the status was written: if that fails, none is sent", func(e *env) {
		e.occupy()
		e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
		e.Event("the API server cannot write the status")
		e.wire.replace(noStatus)
		e.attempt()
		if n := len(e.recorder.of(conflict)); n > 0 {
			e.Fatalf("the status could not be written, and %d Events with the reason %s were sent", n, conflict)
		}
		e.Event("the API server can write the status")
		e.wire.replace(nil)
		e.attempt()
		e.expectAnnounced(conflict, corev1.EventTypeWarning)
	})
	s.reconciles("an Event has the text of the API server as it is, also with a % in it", func(e *env) {
		const rejected = `Invalid value: "100%d": may not be set`
		e.wire.replace(invalidService("spec.externalName", rejected)) //nolint:bodyclose // the client does
		e.create("cow", fields{"greeting": "Moo"})
		e.attempt()
		if one := e.expectAnnounced(applyFailed, corev1.EventTypeWarning); !strings.Contains(one.note, rejected) {
			e.Errorf("the Event does not have the text of the API server, %s", rejected)
		}
	})
	s.reconciles("a Lolcow that begins to serve is announced by one Event of the type Normal, and its rollout by none", func(e *env) {
		e.serve()
		if n := len(e.recorder.of(rollingOut)); n > 0 {
			e.Errorf("the Recorder got %d Events with the reason %s; expected none", n, rollingOut)
		}
		e.Event("the operator restarts")
		e.restart()
		e.quiet()
		e.expectAnnounced(serving, corev1.EventTypeNormal)
	})
	s.reconciles("the type of an Event is that of its reason: Normal for ScaledToZero, Warning for ProgressDeadlineExceeded", func(e *env) {
		e.serve()
		e.change("cow", fields{"replicas": int64(0)})
		e.settle("cow")
		e.rollOut(e.deployment("Moo"))
		e.settle("cow")
		e.expectAnnounced(scaledToZero, corev1.EventTypeNormal)
		e.change("cow", fields{"replicas": int64(1)})
		e.settle("cow")
		e.stall(e.deployment("Moo"))
		e.settle("cow")
		e.expectAnnounced(deadline, corev1.EventTypeWarning)
	})
	s.reconciles("the Event arrives at the API server, with the role in config/rbac/role.yaml", (*env).eventArrives)
}

// action is that of the Events: what the operator did.
const action = "Reconcile"

// createdAgain deletes a Lolcow, and creates another one of the same name. What the operator remembers is about the first.
func (e *env) createdAgain() {
	e.occupy()
	spec := fields{"greeting": "Moo", "port": int64(occupiedPort)}
	e.create("cow", spec)
	e.attempt()
	e.expectAnnounced(conflict, corev1.EventTypeWarning)
	e.Event("kubectl delete: Lolcow cow, with its Deployment")
	for _, one := range []client.Object{e.lolcow("cow"), e.deployment("Moo")} {
		e.must(e.client.Delete(e.Context(), one), "deleting a Lolcow and its Deployment")
	}
	e.settle("cow")
	e.create("cow", spec)
	e.attempt()
	e.expectReady(metav1.ConditionFalse, conflict)
	if n := len(e.recorder.of(conflict)) - 1; n != 1 {
		e.Fatalf("for the new Lolcow the Recorder got %d Events with the reason %s; expected 1", n, conflict)
	}
}

// otherMessage has the API server reject a Service for one reason, and then for another.
func (e *env) otherMessage() {
	const rejected = `Invalid value: "moo": may not be set`
	e.create("cow", fields{"greeting": "Moo"})
	for _, field := range []string{"spec.externalName", "spec.loadBalancerClass"} {
		e.wire.replace(invalidService(field, rejected)) //nolint:bodyclose // the client does
		e.Eventually(patience, func() string {
			_, _ = e.reconcile("cow")
			if ready := e.condition("cow", "Ready"); ready.Reason != applyFailed || !strings.Contains(ready.Message, field) {
				return "the API server rejects " + field + ", and the condition Ready does not say so"
			}
			return ""
		})
	}
	e.expectAnnounced(applyFailed, corev1.EventTypeWarning)
}

// expectAnnounced asserts that one Event with a reason was sent, and its type.
func (e *env) expectAnnounced(reason, eventType string) announcement {
	e.Helper()
	found := e.recorder.of(reason)
	if len(found) != 1 {
		e.Fatalf("the Recorder got %d Events with the reason %s; expected 1", len(found), reason)
	}
	if found[0].eventType != eventType {
		e.Errorf("the Event with the reason %s has the type %s; expected %s", reason, text(found[0].eventType), eventType)
	}
	return found[0]
}

// noStatus responds to all that writes the status of a Lolcow as an API server does whose etcd is down.
func noStatus(r request) *http.Response {
	if r.resource != "lolcows/status" || !slices.Contains(writeVerbs, r.verb) {
		return nil
	}
	return internalError()
}

// eventArrives runs the operator as on a cluster, and looks for the Event where users do.
func (e *env) eventArrives() {
	e.impersonate(e.rules())
	e.occupy()
	m := e.start()
	e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
	e.await("an Event with the reason "+conflict, func() bool {
		var list eventsv1.EventList
		e.must(e.client.List(e.Context(), &list, client.InNamespace(e.namespace)), "listing Events")
		return slices.ContainsFunc(list.Items, func(one eventsv1.Event) bool {
			return one.Reason == conflict && one.Regarding.Kind == lolcowKind.Kind && one.Regarding.Name == "cow"
		})
	})
	m.stop()
	e.expectAllowed()
}
