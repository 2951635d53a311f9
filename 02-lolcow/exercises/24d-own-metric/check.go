// Package ownmetric is exercise 24d: a metric for an alert, and who may read it.
package ownmetric

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry func(config *rest.Config, options ctrl.Options) (ctrl.Manager, error)

const patience = 10 * time.Second

// Check starts the manager once: there is one registry of metrics in a process.
func Check(t *check.T, work check.Work[Entry]) {
	var r *running
	ok := t.Behaviour("the manager starts, and serves metrics", func(b *check.B) { r = start(b, work) })
	if r != nil {
		defer r.stop()
	}
	if !ok {
		return
	}
	t.Behaviour("without a token the status is 401, without the permission 403, and with it 200", func(b *check.B) {
		r.expectStatus(b, "a client without a token", "", http.StatusUnauthorized)
		r.expectStatus(b, "an account without the permission", r.outsider, http.StatusForbidden)
		r.expectStatus(b, "an account with the permission", r.scraper, http.StatusOK)
	})
	ok = t.Behaviour("a Lolcow with a port conflict has the value 1, and others have 0", func(b *check.B) {
		s := r.scene(b)
		s.create("new")
		s.create("served")
		s.report("served", v1alpha1.ReasonServing)
		s.create("waiting")
		s.expect("waiting", "0")
		s.report("waiting", v1alpha1.ReasonPortConflict)
		s.expect("waiting", "1")
		s.expect("served", "0")
		s.expect("new", "0")
	})
	if !ok {
		return
	}
	t.Behaviour("the value follows the condition", func(b *check.B) {
		s := r.scene(b)
		s.create("cow")
		s.expect("cow", "0")
		for range 2 {
			s.report("cow", v1alpha1.ReasonPortConflict)
			s.expect("cow", "1")
			s.greet("Moo, and again")
			s.settle()
			s.expect("cow", "1")
			s.report("cow", v1alpha1.ReasonRollingOut)
			s.expect("cow", "0")
		}
	})
	t.Behaviour("the labels are namespace and name, and a new greeting makes no new series", func(b *check.B) {
		s := r.scene(b)
		s.create("cow")
		s.expect("cow", "0")
		s.greet("Baa")
		s.settle()
		s.labels()
	})
	t.Behaviour("the series of a Lolcow that is deleted is gone", func(b *check.B) {
		s := r.scene(b)
		other := r.scene(b)
		other.create("cow")
		s.create("calf")
		s.create("cow")
		s.expect("cow", "0")
		s.report("cow", v1alpha1.ReasonPortConflict)
		s.expect("cow", "1")
		s.remove()
		s.gone()
		s.settle()
		s.expect("calf", "0")
		other.expect("cow", "0")
	})
	t.Behaviour("so is that of a Lolcow with a finalizer, at last", func(b *check.B) {
		s := r.scene(b)
		s.create("cow", "example.com/cleanup")
		s.expect("cow", "0")
		s.report("cow", v1alpha1.ReasonPortConflict)
		s.expect("cow", "1")
		s.remove()
		s.settle()
		s.release()
		s.gone()
	})
}

// expectStatus reads the metrics with a token.
func (r *running) expectStatus(b *check.B, who, token string, want int) {
	status, _, err := r.get("https", token)
	if err != nil {
		b.Fatalf("reading the metrics with TLS: %s", reason(err))
	}
	if status != want {
		b.Fatalf("%s should get %d, and gets %d", who, want, status)
	}
}
