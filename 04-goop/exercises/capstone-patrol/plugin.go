package patrol

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/exercises/internal/patrols"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const (
	// begin is how long it may take until the plugin watches, with pauses: that of a reflector is longer after each watch that was short.
	begin = 40 * time.Second
	// cuts is how often a watch is cut, and failures how many requests fail, one after the other.
	cuts, failures = 3, 3
)

// follow is a Patrol p without an operator, and one call of the plugin.
type follow struct {
	*cluster
	entry  Entry
	wire   *kube.Wire
	client client.WithWatch

	returned <-chan struct{}
	code     int

	mu  sync.Mutex
	out bytes.Buffer
}

func newFollow(b *check.B, entry Entry) *follow {
	f := &follow{cluster: newCluster(b, entry), entry: entry, wire: kube.NewWire(b)}
	var err error
	f.client, err = client.NewWithWatch(f.wire.Config(), client.Options{Scheme: newScheme(), Mapper: f.cluster.client.RESTMapper()})
	f.must("making a client", err)
	f.patrol("p", nil)
	return f
}

// Write is where the plugin writes to.
func (f *follow) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.b.Event("  it writes %q", text)
	return f.out.Write(text)
}

// call calls the plugin.
func (f *follow) call(ctx context.Context) {
	f.b.Event("Plugin is called")
	f.returned = f.b.Go(func() { f.code = f.entry.Plugin(ctx, f.client, "p", f) })
}

// start calls the plugin, and waits until it watches.
func (f *follow) start() {
	f.call(f.b.Context())
	f.watches()
}

func (f *follow) watches() {
	f.b.Eventually(begin, func() string {
		if f.wire.OpenWatches() == 0 && !f.hasReturned() {
			return "the plugin does not watch"
		}
		return ""
	})
}

// meanwhile cuts the watch. Before the next one can begin, something happens.
func (f *follow) meanwhile(change func()) {
	f.wire.CutWatches()
	change()
	f.wire.Release()
	f.watches()
}

func (f *follow) hasReturned() bool {
	select {
	case <-f.returned:
		return true
	default:
		return false
	}
}

// returns waits until the plugin has returned.
func (f *follow) returns(why string, code int) {
	f.b.Eventually(begin, func() string {
		if !f.hasReturned() {
			return why + ", and the plugin does not return"
		}
		return ""
	})
	if f.code != code {
		f.b.Fatalf("%s, and the plugin returned %d instead of %d", why, f.code, code)
	}
}

// wrote checks what the plugin has written.
func (f *follow) wrote(want ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := strings.Split(strings.TrimSpace(f.out.String()), "\n"); !slices.Equal(got, want) {
		f.b.Fatalf("the plugin should have written the lines %q, and has written %q", want, got)
	}
}

// done adds a node to the status, as the operator.
func (f *follow) done(name string, result patrols.Result) {
	f.b.Event("the operator reports that %s is done: %s", name, result)
	patrol := f.get("p")
	patrol.Status.Nodes = append(patrol.Status.Nodes, patrols.Node{Name: name, UID: types.UID(fmt.Sprintf("node-%d", len(patrol.Status.Nodes))), Result: result})
	f.must("writing the status", f.cluster.client.Status().Update(f.b.Context(), patrol))
}

// ends writes a condition of the end, as the operator, and before one that is not True.
func (f *follow) ends(condition string) {
	f.b.Event("the operator reports the end: %s", condition)
	patrol := f.get("p")
	for _, kind := range []string{patrols.ConditionComplete, patrols.ConditionFailed} {
		status := metav1.ConditionFalse
		if kind == condition {
			status = metav1.ConditionTrue
		}
		apimeta.SetStatusCondition(&patrol.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Ended"})
	}
	f.must("writing the status", f.cluster.client.Status().Update(f.b.Context(), patrol))
}

// plugins checks the plugin. It is not about the operator.
func plugins(t *check.T, entry Entry) {
	t.Behaviour("the plugin writes each node once, and returns 0 when the Patrol is complete", func(b *check.B) {
		f := newFollow(b, entry)
		f.done("a", patrols.Succeeded)
		f.start()
		f.done("b", patrols.Failed)
		f.done("c", patrols.Succeeded)
		f.ends(patrols.ConditionComplete)
		f.returns("the Patrol is complete", 0)
		f.wrote("a Succeeded", "b Failed", "c Succeeded")
	})
	t.Behaviour("it writes a node that has the name of an earlier one, too", func(b *check.B) {
		f := newFollow(b, entry)
		f.start()
		f.done("a", patrols.Failed)
		f.done("b", patrols.Succeeded)
		f.done("a", patrols.Succeeded)
		f.ends(patrols.ConditionComplete)
		f.returns("the Patrol is complete", 0)
		f.wrote("a Failed", "b Succeeded", "a Succeeded")
	})
	t.Behaviour("it returns 1 when the Patrol has failed, also before it was called", func(b *check.B) {
		f := newFollow(b, entry)
		f.start()
		f.done("a", patrols.Failed)
		f.ends(patrols.ConditionFailed)
		f.returns("the Patrol has failed", 1)
		f.call(b.Context())
		f.returns("the Patrol has failed", 1)
	})
	t.Behaviour("it returns 2 when there is no Patrol, and when it is deleted", func(b *check.B) {
		f := newFollow(b, entry)
		f.start()
		f.remove("p")
		f.returns("the Patrol was deleted", 2)
		f.call(b.Context())
		f.returns("there is no Patrol of that name", 2)
	})
	t.Behaviour("it returns 124 when the deadline expires, and 130 when it is interrupted", func(b *check.B) {
		f := newFollow(b, entry)
		ctx, cancel := context.WithCancel(b.Context())
		f.call(ctx)
		f.watches()
		cancel()
		f.returns("its context was cancelled", 130)
		expired, end := context.WithTimeout(b.Context(), time.Second)
		defer end()
		f.call(expired)
		f.returns("the deadline has expired", 124)
	})
	broken(t, entry)
}

// broken checks it with a watch that breaks.
func broken(t *check.T, entry Entry) {
	t.Behaviour("a watch that is cut is not the end of the plugin, and it misses no node", func(b *check.B) {
		f := newFollow(b, entry)
		f.start()
		f.done("a", patrols.Succeeded)
		for range cuts {
			f.meanwhile(func() {})
		}
		f.wire.Fail(failures, func(kube.Request) bool { return true })
		f.meanwhile(func() { f.done("b", patrols.Failed) })
		f.meanwhile(func() {
			f.done("c", patrols.Succeeded)
			f.ends(patrols.ConditionComplete)
		})
		f.returns("the Patrol is complete", 0)
		f.wrote("a Succeeded", "b Failed", "c Succeeded")
	})
	t.Behaviour("while the API server is away, the deadline still expires, and it can be interrupted", func(b *check.B) {
		f := newFollow(b, entry)
		f.wire.Fail(1000, func(kube.Request) bool { return true })
		interrupted, interrupt := context.WithCancel(b.Context())
		f.call(interrupted)
		b.Eventually(begin, func() string {
			if len(f.wire.Requests()) == 0 {
				return "the plugin sends no request"
			}
			return ""
		})
		interrupt()
		f.returns("its context was cancelled", 130)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		f.call(ctx)
		f.returns("the deadline has expired", 124)
	})
	t.Behaviour("a Patrol of the same name is not the one that it follows", func(b *check.B) {
		f := newFollow(b, entry)
		f.start()
		f.meanwhile(func() {
			f.remove("p")
			f.patrol("p", nil)
			f.ends(patrols.ConditionComplete)
		})
		f.returns("the Patrol was deleted, and another one of that name is complete", 2)
	})
	for _, inStream := range []bool{true, false} {
		name := "410 in the response is not the end of the plugin"
		if inStream {
			name = "410 in the stream is not the end of the plugin"
		}
		t.Behaviour(name, func(b *check.B) {
			f := newFollow(b, entry)
			f.start()
			f.wire.Gap(inStream, func() { f.done("a", patrols.Succeeded) })
			f.watches()
			f.done("b", patrols.Succeeded)
			f.ends(patrols.ConditionComplete)
			f.returns("the Patrol is complete", 0)
			f.wrote("a Succeeded", "b Succeeded")
		})
	}
	t.Behaviour("the plugin reads Patrols only, writes nothing, and does not poll", func(b *check.B) {
		f := newFollow(b, entry)
		f.start()
		before := len(f.wire.Requests("get", "list"))
		for range changes {
			f.change("p", "maxFailures", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures++ })
		}
		f.ends(patrols.ConditionComplete)
		f.returns("the Patrol is complete", 0)
		if len(f.wire.Requests("get", "list"))-before >= changes {
			b.Fatalf("the Patrol has changed %d times, and was read as often, or more often", changes)
		}
		for _, request := range f.wire.Requests() {
			if !strings.HasPrefix(request.Resource, "/") && (request.Resource != "patrols" || kube.Writes(request)) {
				b.Fatalf("it sent this, which the user may not: %s", request)
			}
		}
	})
}
