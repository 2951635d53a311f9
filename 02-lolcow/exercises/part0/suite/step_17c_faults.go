package suite

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outage are the behaviours while the DNS service does not work.
func (s *suite) outage() {
	s.reconciles("a DNS service that responds with 500 is reported as DNSFailed, tried again, and forgotten when it works", func(e *env) {
		e.dns.set(fails)
		e.create("cow", fields{"greeting": "Moo", "hostname": firstHost})
		e.expectFailure(dnsFailed, "500")
		e.deployment("Moo")
		e.service()
		e.dns.set(works)
		e.expectRecovery(dnsFailed)
		e.expectRecords("when the service works again", firstHost)
	})
	s.reconciles("a DNS service that does not respond does not hold Reconcile", func(e *env) {
		e.dns.set(hangs)
		e.create("cow", fields{"greeting": "Moo", "hostname": firstHost})
		e.expectReturn()
		e.deployment("Moo")
		e.dns.set(works)
		e.settle("cow")
		e.dns.set(hangs)
		e.delete("cow", metav1.DeletePropagationBackground)
		e.expectReturn()
	})
	s.reconciles("while the record cannot be deleted, the deletion waits and is tried again; after five minutes the Lolcow is deleted, with one Event", (*env).givesUp)
	s.reconciles("the five minutes begin with the deletion, also where the operator restarts meanwhile", func(e *env) {
		e.createWithRecord()
		e.dns.set(fails)
		e.delete("cow", metav1.DeletePropagationBackground)
		e.attempt()
		e.Event("six minutes later, the operator restarts")
		e.clock.step(6 * time.Minute)
		e.restart()
		e.attempt()
		e.expectGone()
	})
}

// expectReturn calls Reconcile for the Lolcow cow, and asserts that it returns.
func (e *env) expectReturn() {
	done := e.Go(func() { _, _ = e.reconcile("cow") })
	e.Eventually(patience, func() string {
		select {
		case <-done:
			return ""
		default:
			return "the DNS service does not respond, and Reconcile does not return: no other Lolcow is reconciled"
		}
	})
}

// givesUp steps the clock while the record cannot be deleted.
func (e *env) givesUp() {
	e.createWithRecord()
	e.dns.set(fails)
	e.delete("cow", metav1.DeletePropagationBackground)
	e.attempt()
	e.Event("four minutes later")
	e.clock.step(4 * time.Minute)
	result, err := e.reconcile("cow")
	if e.finalizers("cow") == nil {
		e.Fatalf("the Lolcow is deleted, its record is not, and the five minutes are not over")
	}
	if !comesAgain(result, err) {
		e.Fatalf("the record could not be deleted, and Reconcile %s: nothing triggers another try", returned(err))
	}
	if n := len(e.recorder.of(recordLeft)); n > 0 {
		e.Fatalf("the Recorder got an Event with the reason %s, and the five minutes are not over", recordLeft)
	}
	e.Event("two minutes later")
	e.clock.step(2 * time.Minute)
	e.attempt()
	if e.finalizers("cow") != nil {
		e.Fatalf("the record could not be deleted for six minutes, and the Lolcow is still there: its namespace cannot be deleted either")
	}
	e.expectAnnounced(recordLeft, corev1.EventTypeWarning)
}

// eachRequest has a Lolcow live again and again, from its creation to its deletion, with a fault at another request each time.
func (e *env) eachRequest(kind fault) {
	for number := 1; e.life(fmt.Sprintf("cow-%d", number), number, kind); number++ {
	}
}

// life goes through the life of one Lolcow, and reports whether it had as many requests. A user who deletes the Lolcow does not
// know that the operator is down.
func (e *env) life(name string, number int, kind fault) bool {
	e.restart()
	e.wire.interrupt(number, kind)
	e.create(name, fields{"greeting": "Moo", "hostname": firstHost})
	e.untilIdle(name)
	at := e.wire.interrupted()
	if got := e.dns.hostnames(); len(got) != 1 && kind == lost {
		e.Fatalf("a request is lost, %s, and after the retries the DNS service has %d records of the Lolcow; expected 1", at, len(got))
	}
	e.delete(name, metav1.DeletePropagationBackground)
	if at != "" && kind == crashed {
		e.Event("the operator restarts")
		e.restart()
	}
	e.untilIdle(name)
	if at == "" {
		if at = e.wire.interrupted(); at != "" && kind == crashed {
			e.Event("the operator restarts")
			e.restart()
			e.untilIdle(name)
		}
	}
	if left := e.finalizers(name); left != nil {
		e.Fatalf("the operator was interrupted at this request: %s; the Lolcow is not deleted, it has the finalizers %v", at, left)
	}
	if got := e.dns.hostnames(); len(got) > 0 {
		e.Fatalf("the operator was interrupted at this request: %s; the Lolcow is deleted, and its record is left", at)
	}
	return at != ""
}

// untilIdle calls Reconcile until a call writes nothing and does not ask for another one, or the operator has crashed.
func (e *env) untilIdle(name string) {
	for range mostReconciliations {
		before := e.wire.count()
		result, err := e.reconcile(name)
		if e.wire.crashed() || !comesAgain(result, err) && len(e.wire.writes(before)) == 0 {
			return
		}
	}
}
