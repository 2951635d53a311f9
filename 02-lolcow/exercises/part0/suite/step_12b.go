package suite

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// allocated is what the API server says of a node port that another Service has.
const allocated = "provided port is already allocated"

// longestPause is how long a conflict may be left alone.
const longestPause = 10 * time.Second

// portConflict are the behaviours of step 12b.
func (s *suite) portConflict() {
	s.reconciles("where another Service has the port, Ready is False with the reason PortConflict and the message of the API server", func(e *env) {
		e.occupy()
		e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
		e.attempt()
		ready := e.expectReady(metav1.ConditionFalse, conflict)
		if !strings.Contains(ready.Message, allocated) {
			e.Errorf("the message of the condition does not have the text of the API server, %q", allocated)
		}
	})
	s.reconciles("the other Service stays as it is", func(e *env) {
		other := e.occupy()
		e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
		e.attempt()
		var now corev1.Service
		if err := e.client.Get(e.Context(), client.ObjectKeyFromObject(other), &now); err != nil || now.UID != other.UID {
			e.Fatalf("the other Service was deleted")
		}
		if now.ResourceVersion != other.ResourceVersion {
			e.Errorf("the other Service was changed")
		}
	})
	s.reconciles("the Deployment is there in spite of the conflict", func(e *env) {
		e.occupy()
		e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
		e.attempt()
		e.deployment("Moo")
	})
	s.reconciles("a conflict is tried again, but not at once, and the retries do not write the status", func(e *env) {
		e.occupy()
		e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
		e.attempt()
		before := e.wire.count()
		result, err := e.reconcile("cow")
		switch {
		case !comesAgain(result, err):
			e.Errorf("Reconcile %s: when the port is free, nothing triggers a reconciliation", returned(err))
		case result.RequeueAfter > 0 && result.RequeueAfter < time.Millisecond:
			e.Errorf("Reconcile asks to be called again after %s: it would run without a pause", result.RequeueAfter)
		case result.RequeueAfter > longestPause:
			e.Errorf("Reconcile asks to be called again after %s: the port may be free all that time", result.RequeueAfter)
		}
		if n := e.statusWrites(before); n > 0 {
			e.Errorf("a retry that fails as the one before writes the status")
		}
	})
	s.reconciles("while another Service has the port, the Deployment and the condition follow the spec", (*env).changedMeanwhile)
	s.reconciles("when the port is free, the Service gets it, and Ready says nothing of a conflict", (*env).portReleased)
	s.reconciles("a Service with another port keeps that while the new one is taken, which is reported as a PortConflict, too", (*env).portKept)
	s.otherRejections()
}

// otherRejections are of Services that are invalid, without a conflict of ports.
func (s *suite) otherRejections() {
	for _, one := range []struct{ behaviour, field, message string }{
		{"a Service that is invalid for another reason is not reported as a PortConflict",
			"spec.externalName", `Invalid value: "moo": may not be set`},
		{"a cluster IP that another Service has is not reported as a PortConflict",
			"spec.clusterIPs", `Invalid value: ["10.0.0.99"]: failed to allocate IP 10.0.0.99: provided IP is already allocated`},
		{"a port that is out of the range of the cluster is not reported as a PortConflict",
			"spec.ports[0].nodePort", "Invalid value: 30070: provided port is not in the valid range. The range of valid ports is 31000-32767"},
	} {
		s.reconciles(one.behaviour, func(e *env) {
			e.wire.replace(invalidService(one.field, one.message)) //nolint:bodyclose // the client does
			e.create("cow", fields{"greeting": "Moo", "port": int64(firstPort)})
			e.attempt()
			ready := e.condition("cow", "Ready")
			if ready.Status != metav1.ConditionFalse || ready.Reason == conflict {
				e.Fatalf("the API server rejects %s, and the condition Ready is %s", one.field, describe(ready))
			}
			if !strings.Contains(ready.Message, one.field) {
				e.Errorf("the message of the condition does not have the text of the API server, with the field %s", one.field)
			}
		})
	}
}

// occupy creates a Service that has the port.
func (e *env) occupy() *corev1.Service {
	other := e.otherService(occupiedPort)
	e.Event("kubectl create: Service other with the node port %d", occupiedPort)
	e.must(e.client.Create(e.Context(), other), "creating the other Service")
	return other
}

// attempt calls Reconcile for the Lolcow cow some times, whatever it returns.
func (e *env) attempt() {
	for range 3 {
		_, _ = e.reconcile("cow")
	}
}

// invalidService responds to all that writes a Service as the API server does to one with a field that cannot be.
func invalidService(field, message string) func(request) *http.Response {
	return func(r request) *http.Response {
		if r.resource != "services" || !slices.Contains(writeVerbs, r.verb) || r.verb == "delete" {
			return nil
		}
		body, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Message: fmt.Sprintf(`Service "cow" is invalid: %s: %s`, field, message),
			Reason:  metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
			Details: &metav1.StatusDetails{Kind: "Service", Name: "cow", Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: message},
			}},
		})
		if err != nil {
			return nil
		}
		return respond(http.StatusUnprocessableEntity, "application/json", string(body))
	}
}

// changedMeanwhile changes the greeting while the conflict lasts.
func (e *env) changedMeanwhile() {
	e.occupy()
	e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
	e.attempt()
	e.expectReady(metav1.ConditionFalse, conflict)
	e.change("cow", fields{"greeting": "Baa"})
	e.attempt()
	e.deployment("Baa")
	e.expectReady(metav1.ConditionFalse, conflict)
}

// portKept asks for the port of another Service when the Lolcow has one already.
func (e *env) portKept() {
	e.create("cow", fields{"greeting": "Moo", "port": int64(firstPort)})
	e.settle("cow")
	e.occupy()
	e.change("cow", fields{"port": int64(occupiedPort)})
	e.attempt()
	ready := e.expectReady(metav1.ConditionFalse, conflict)
	if !strings.Contains(ready.Message, allocated) {
		e.Errorf("the message of the condition does not have the text of the API server, %q", allocated)
	}
	if e.serviceAt(firstPort) == nil {
		e.Errorf("the Service has lost the port that it had")
	}
	if result, err := e.reconcile("cow"); !comesAgain(result, err) {
		e.Errorf("Reconcile %s: when the port is free, nothing triggers a reconciliation", returned(err))
	}
}

// portReleased deletes the Service that has the port, and expects the Lolcow to get it.
func (e *env) portReleased() {
	other := e.occupy()
	e.create("cow", fields{"greeting": "Moo", "port": int64(occupiedPort)})
	e.attempt()
	e.expectReady(metav1.ConditionFalse, conflict)
	e.Event("kubectl delete: Service other")
	e.must(e.client.Delete(e.Context(), other), "deleting the other Service")
	e.awaitEnd(conflict)
	e.expectPort(occupiedPort)
	if ready := e.expectReady(metav1.ConditionFalse, rollingOut); strings.Contains(ready.Message, allocated) {
		e.Errorf("the Service has the port, and the message of the condition still has the text of the API server, %q", allocated)
	}
}
