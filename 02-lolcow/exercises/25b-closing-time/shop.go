package closing

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// most is how many reconciliations may be needed for a day.
const most = 10

// shop is a ConfigMap, and a reconciler.
type shop struct {
	b          *check.B
	entry      Entry
	client     client.Client
	key        client.ObjectKey
	wire       *kube.Wire
	clock      *testingclock.FakePassiveClock
	reconciler reconcile.Reconciler
}

func newShop(b *check.B, entry Entry) *shop {
	s := &shop{
		b: b, entry: entry, wire: kube.NewWire(b), clock: testingclock.NewFakePassiveClock(morning),
		key: client.ObjectKey{Namespace: kube.Namespace(b), Name: "shop"},
	}
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{})
	s.must("making a client", err)
	s.must("creating a ConfigMap", s.client.Create(b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name},
	}))
	s.restart()
	return s
}

func (s *shop) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// restart makes a new reconciler, which remembers nothing of the one before.
func (s *shop) restart() {
	s.b.Event("the controller starts")
	c, err := client.New(s.wire.Config(), client.Options{})
	s.must("making a client", err)
	s.reconciler = s.entry(c, s.clock)
}

// closesAt sets the time, as a user: this long after the morning.
func (s *shop) closesAt(after time.Duration) {
	s.set("closesAt", morning.Add(after).Format(time.RFC3339Nano))
}

// set sets a key of the data, as a user.
func (s *shop) set(key, text string) {
	s.b.Event("the user sets %s to %q", key, text)
	patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, key, text)
	s.must("changing the ConfigMap", s.client.Patch(s.b.Context(), s.object(), client.RawPatch("application/merge-patch+json", patch)))
}

// removeTime removes the time, as a user.
func (s *shop) removeTime() {
	s.b.Event("the user removes closesAt")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"closesAt":null}}`))
	s.must("changing the ConfigMap", s.client.Patch(s.b.Context(), s.object(), patch))
}

func (s *shop) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
}

// call calls Reconcile.
func (s *shop) call() (reconcile.Result, error) {
	s.b.Event("%s: Reconcile", s.now())
	result, err := s.reconciler.Reconcile(s.b.Context(), reconcile.Request{NamespacedName: s.key})
	s.b.Event("  it returned RequeueAfter: %s, and the error: %v", result.RequeueAfter, err)
	return result, err
}

// reconcile calls Reconcile, which has no reason to return an error.
func (s *shop) reconcile() reconcile.Result {
	result, err := s.call()
	if err != nil {
		s.b.Fatalf("Reconcile returned an error: %v", err)
	}
	return result
}

// runUntil reconciles, as often as the results ask for it, until the shop is closed, which has to be at that time after the morning.
func (s *shop) runUntil(after time.Duration) {
	closing := morning.Add(after)
	for range most {
		result := s.reconcile()
		open := s.open()
		switch {
		case open == "false" && s.clock.Now().Before(closing):
			s.b.Fatalf("it is %s, and the shop, which closes at %s, is closed", s.now(), closing.Format(time.RFC3339Nano))
		case open == "false" && s.clock.Now().After(closing):
			s.b.Fatalf("the shop closes at %s, and was closed at %s", closing.Format(time.RFC3339Nano), s.now())
		case open == "false" && result.RequeueAfter > 0:
			s.b.Fatalf("the shop is closed, and Reconcile asks for another reconciliation in %s", result.RequeueAfter)
		case open == "false":
			return
		case result.RequeueAfter <= 0:
			s.b.Fatalf("it is %s, the shop, which closes at %s, has open=%q, and nothing triggers another reconciliation: RequeueAfter is %s",
				s.now(), closing.Format(time.RFC3339Nano), open, result.RequeueAfter)
		}
		s.clock.SetTime(s.clock.Now().Add(result.RequeueAfter))
	}
	s.b.Fatalf("there were %d reconciliations, and it is only %s: this is polling", most, s.now())
}

// unreadable calls Reconcile for a text that is no time.
func (s *shop) unreadable() {
	result, err := s.call()
	switch {
	case err != nil && !errors.Is(err, reconcile.TerminalError(nil)):
		s.b.Fatalf("the text will not become a time by itself, and Reconcile returned an error, which is retried: %v", err)
	case err == nil && result.RequeueAfter > 0:
		s.b.Fatalf("the text will not become a time by itself, and Reconcile asks for another reconciliation in %s", result.RequeueAfter)
	}
}

// writesNothing reconciles once more.
func (s *shop) writesNothing() {
	seen := len(s.wire.Requests())
	s.reconcile()
	for _, request := range s.wire.Requests()[seen:] {
		if kube.Writes(request) {
			s.b.Fatalf("nothing has changed, and this was sent: %s", request)
		}
	}
}

func (s *shop) now() string { return s.clock.Now().Format(time.RFC3339Nano) }

func (s *shop) open() string {
	var object corev1.ConfigMap
	s.must("reading the ConfigMap", s.client.Get(s.b.Context(), s.key, &object))
	return object.Data["open"]
}

func (s *shop) expect(want string) {
	if got := s.open(); got != want {
		s.b.Fatalf("it is %s, and open is %q; it should be %q", s.now(), got, want)
	}
}
