// Package smallest is exercise 02c: a controller of 30 lines.
package smallest

import (
	"net/http"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry adds the reader's controller to a manager.
type Entry func(mgr ctrl.Manager) error

const patience = 5 * time.Second

// Check runs the controller, and changes Namespaces.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a Namespace that exists at the start gets the label", func(b *check.B) {
		s := newScene(b, work.Entry)
		name := s.create()
		s.start()
		s.labelled(name)
	})
	if !ok {
		return
	}
	t.Behaviour("a Namespace that is created later gets the label", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.start()
		s.labelled(s.create())
		s.labelled(s.create())
	})
	t.Behaviour("a label that a user removes or changes returns", func(b *check.B) {
		s := newScene(b, work.Entry)
		name := s.create()
		s.start()
		s.labelled(name)
		s.patch(name, `{"metadata":{"labels":{"seen":null}}}`)
		s.labelled(name)
		s.patch(name, `{"metadata":{"labels":{"seen":"no"}}}`)
		s.labelled(name)
	})
	t.Behaviour("other labels stay", func(b *check.B) {
		s := newScene(b, work.Entry)
		name := s.create()
		s.patch(name, `{"metadata":{"labels":{"team":"cows"}}}`)
		var once sync.Once
		s.wire.Before(func(r kube.Request, _ *http.Request) (*http.Response, error) {
			if r.Name == name && kube.Writes(r) {
				once.Do(func() { s.patch(name, `{"metadata":{"labels":{"late":"yes"}}}`) })
			}
			return nil, nil
		})
		s.start()
		s.labelled(name)
		s.has(name, "team", "cows")
		s.has(name, "late", "yes")
	})
	t.Behaviour("a request that fails is sent again, until it succeeds", func(b *check.B) {
		s := newScene(b, work.Entry)
		name := s.create()
		s.wire.Fail(4, func(r kube.Request) bool { return r.Name == name && kube.Writes(r) })
		s.start()
		s.labelled(name)
	})
	t.Behaviour("after a restart with nothing changed, a Namespace is not written", func(b *check.B) {
		s := newScene(b, work.Entry)
		name := s.create()
		s.start()
		s.labelled(name)
		s.stop()
		s.start()
		// The second is created when the controller is at work: the queue has it behind all that existed at the start.
		s.labelled(s.create())
		s.labelled(s.create())
		for _, r := range s.wire.Requests() {
			if r.Name == name && kube.Writes(r) {
				b.Fatalf("the Namespace has the label, and after the restart the controller sent: %s", r)
			}
		}
	})
}
