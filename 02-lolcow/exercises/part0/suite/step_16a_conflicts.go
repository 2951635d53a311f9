package suite

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conflicts are the behaviours for requests about something that is out of date.
func (s *suite) conflicts() {
	s.reconciles("a Conflict is not reported: the next reconciliation reads again, and succeeds", (*env).conflict)
	s.reconciles("a Conflict of the Service is not reported", (*env).serviceConflict)
	s.reconciles("a Conflict of the Service is not in the message where the Deployment is rejected", (*env).conflictBesides)
}

// conflict has another controller change the Deployment between the operator's read and its write.
func (e *env) conflict() {
	e.serve()
	e.change("cow", fields{"greeting": "Baa"})
	var interferes error
	done := false
	e.wire.replace(func(r request) *http.Response {
		if r.resource != "deployments" || !slices.Contains(writeVerbs, r.verb) || done {
			return nil
		}
		done = true
		e.Event("another controller: an annotation of the Deployment %s", r.name)
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/other":"moo"}}}`))
		interferes = e.client.Patch(e.Context(), &deployment{ObjectMeta: metav1.ObjectMeta{Name: r.name, Namespace: e.namespace}}, patch)
		return nil
	})
	result, err := e.reconcile("cow")
	e.must(interferes, "changing the Deployment as another controller")
	if ready := e.condition("cow", "Ready"); ready.Reason != serving && ready.Reason != rollingOut {
		e.Fatalf("what was read of the Deployment is out of date, and the condition Ready is %s", describe(ready))
	}
	arrived := slices.ContainsFunc(e.deployments(), func(d deployment) bool { return says(d.Spec.Template, "Baa") })
	if !arrived && e.saysReady() {
		e.Fatalf("the new greeting could not be written, and Ready is True for it")
	}
	if !arrived && !comesAgain(result, err) {
		e.Fatalf("after a Conflict Reconcile %s: nothing triggers another try", returned(err))
	}
	e.reconcileUntil(func() string {
		if len(e.deployments()) == 1 && says(e.deployments()[0].Spec.Template, "Baa") {
			return ""
		}
		return "the greeting does not arrive after a Conflict"
	})
	e.expectReady(metav1.ConditionFalse, rollingOut)
}

// serviceConflict has the API server respond to a change of the Service that it is out of date. The check responds in its place:
// a new node port that meets a Conflict may stay allocated for minutes, and no Service has it.
func (e *env) serviceConflict() {
	e.serveAt(firstPort)
	e.change("cow", fields{"port": int64(secondPort)})
	done := false
	e.wire.replace(func(r request) *http.Response {
		if r.resource != "services" || !slices.Contains(writeVerbs, r.verb) || done {
			return nil
		}
		done = true
		return outOfDate(r)
	})
	result, err := e.reconcile("cow")
	if ready := e.condition("cow", "Ready"); ready.Reason != serving && ready.Reason != rollingOut {
		e.Fatalf("what was read of the Service is out of date, and the condition Ready is %s", describe(ready))
	}
	arrived := e.serviceAt(secondPort) != nil
	if !arrived && e.saysReady() {
		e.Fatalf("the new port could not be written, and Ready is True for it")
	}
	if !arrived && !comesAgain(result, err) {
		e.Fatalf("after a Conflict Reconcile %s: nothing triggers another try", returned(err))
	}
	e.reconcileUntil(func() string {
		if e.serviceAt(secondPort) == nil {
			return "the port does not arrive after a Conflict"
		}
		return ""
	})
	e.expectReady(metav1.ConditionTrue, serving)
}

// conflictBesides has the Deployment rejected, and the Service out of date. An operator may report the first, or read again and
// report nothing.
func (e *env) conflictBesides() {
	e.serveAt(firstPort)
	e.change("cow", fields{"greeting": "Baa", "port": int64(secondPort)})
	e.wire.replace(func(r request) *http.Response {
		switch {
		case !slices.Contains(writeVerbs, r.verb):
			return nil
		case r.resource == "deployments":
			return respondStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "the Deployment is forbidden, says the check")
		case r.resource == "services":
			return outOfDate(r)
		}
		return nil
	})
	e.attempt()
	if ready := e.condition("cow", "Ready"); strings.Contains(ready.Message, modified) {
		e.Fatalf("the message of the condition has the text of a Conflict, %q: the next reconciliation reads again", modified)
	}
	e.Event("both can be written")
	e.wire.replace(nil)
	e.reconcileUntil(func() string {
		if e.serviceAt(secondPort) == nil || !slices.ContainsFunc(e.deployments(), func(d deployment) bool { return says(d.Spec.Template, "Baa") }) {
			return "the change does not arrive when both can be written"
		}
		return ""
	})
	e.expectReady(metav1.ConditionFalse, rollingOut)
}

// modified is what the API server says of a write that is about an older object.
const modified = "the object has been modified"

// outOfDate is the response to such a write.
func outOfDate(r request) *http.Response {
	message := fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s; please apply your changes to the latest version and try again", r.resource, r.name, modified)
	return respondStatus(http.StatusConflict, metav1.StatusReasonConflict, message)
}
