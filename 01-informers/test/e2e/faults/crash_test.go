package faults

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
)

// crash says at which request of an operator it crashes, and whether before or after. The zero value is no crash.
type crash struct {
	at request
	// after: the request reaches the API server and takes effect, and the response is lost.
	after bool
}

// request is a request of an operator: its kind, and its number among those of the same kind. A number among all requests
// would not identify it, because several are sent at once.
type request struct {
	kind string
	n    int
}

var errCrash = errors.New("the operator crashed")

// recorder counts the requests of an operator and of those that follow it, and crashes one of them at one request.
type recorder struct {
	plan crash

	mu      sync.Mutex
	tried   map[string]int // requests that an operator tried to send
	sent    map[string]int // requests that reached the API server
	crashed bool
}

func newRecorder(plan crash) *recorder {
	return &recorder{plan: plan, tried: map[string]int{}, sent: map[string]int{}}
}

// process is one operator, by the requests of its clients.
type process struct {
	*recorder
	// dead: it sends no more requests. Guarded by mu.
	dead bool
	// ended is closed when its last request has taken effect.
	ended chan struct{}
}

// wrap is a transport.WrapperFunc.
func (p *process) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		send, crash := p.decide(req)
		if crash {
			defer close(p.ended)
		}
		if !send {
			return nil, errCrash
		}
		response, err := next.RoundTrip(req)
		if err == nil && crash {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			return nil, errCrash
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (p *process) decide(req *http.Request) (send, crash bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false, false
	}
	kind := kindOf(req)
	p.tried[kind]++
	if p.plan.at == (request{kind: kind, n: p.tried[kind]}) {
		p.dead, p.crashed, crash = true, true, true
	}
	if send = !crash || p.plan.after; send {
		p.sent[kind]++
	}
	return send, crash
}

var namespaceInPath = regexp.MustCompile(`.*/namespaces/[^/]+/`)

// kindOf is the method and the path of a request without the namespace: "PATCH foos/web/status".
func kindOf(req *http.Request) string {
	method := req.Method
	if req.URL.Query().Has("watch") {
		method = "WATCH"
	}
	return method + " " + namespaceInPath.ReplaceAllString(req.URL.Path, "")
}

// isWrite reports whether a request is a write. Reads are sent only by an operator that starts, and by reflectors.
func isWrite(kind string) bool {
	return !strings.HasPrefix(kind, http.MethodGet) && !strings.HasPrefix(kind, "WATCH")
}

// scenarioWrites are the writes of the scenario: in each of the first four steps the Deployment and two of the status, and
// in the third the deletion of the other Deployment. The Events, one a step, are not among them.
var scenarioWrites = map[string]int{
	"PATCH deployments/web":   2,
	"PATCH deployments/other": 2,
	"DELETE deployments/web":  1,
	"PATCH foos/web/status":   8,
}

// TestCrashAtEveryRequest runs one scenario without a crash: a Foo is created, rolled out, scaled, gets another Deployment,
// another user deletes that, and the Foo is deleted. Then it runs it with an operator that crashes, and one that follows
// it: twice for each write, and once for each read at the start. After each step the objects are the same, and the API
// server has received each write as often.
func TestCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	for _, implementation := range inprocess.Names() {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			account := inprocess.NewAccount(t)
			undisturbed := run(newEnv(t, implementation, account), crash{})
			NewWithT(t).Expect(writesOf(undisturbed.sent)).To(Equal(scenarioWrites))
			plans := plans(undisturbed.tried)
			for _, plan := range plans {
				t.Run(fmt.Sprintf("%s %d after=%t", plan.at.kind, plan.at.n, plan.after), func(t *testing.T) {
					t.Parallel()
					g := NewWithT(t)
					got := run(newEnv(t, implementation, account), plan)
					g.Expect(got.crashed).To(BeTrue(), "no operator crashed")
					for i, state := range got.states {
						g.Expect(state).To(Equal(undisturbed.states[i]), "step %d", i+1)
					}
					g.Expect(writesOf(got.sent)).To(Equal(scenarioWrites), "a write was sent twice, or not at all")
					// A crash may lose the Event of the status just before it.
					g.Expect(got.events).To(And(BeNumerically("<=", undisturbed.events), BeNumerically(">=", undisturbed.events-1)))
				})
			}
			t.Logf("%s: %d crashes: %v", implementation, len(plans), undisturbed.sent)
		})
	}
}

// plans are the crashes to test.
func plans(tried map[string]int) []crash {
	var all []crash
	for kind, count := range tried {
		if !isWrite(kind) {
			// Not after: a watch has no end to wait for.
			all = append(all, crash{at: request{kind: kind, n: 1}})
			continue
		}
		if strings.HasPrefix(kind, http.MethodDelete) {
			count = 1 // A second one is sent only while the cache is stale: the next run may not send it.
		}
		for n := range count {
			at := request{kind: kind, n: n + 1}
			all = append(all, crash{at: at}, crash{at: at, after: true})
		}
	}
	return all
}

// writesOf are the writes without Events, which are sent in the background: one may be lost. Deletions of one object count
// once: an operator whose cache still has the object deletes it again, and gets NotFound.
func writesOf(sent map[string]int) map[string]int {
	writes := map[string]int{}
	for kind, count := range sent {
		switch {
		case !isWrite(kind), kind == "POST events", count == 0:
		case strings.HasPrefix(kind, http.MethodDelete):
			writes[kind] = 1
		default:
			writes[kind] = count
		}
	}
	return writes
}

// result is what a run of the scenario led to.
type result struct {
	states      []state // after each step
	events      int
	tried, sent map[string]int
	crashed     bool
}

// run runs the scenario. After a crash, the next check starts another operator.
func run(e *testEnv, plan crash) result {
	e.t.Helper()
	recorder := newRecorder(plan)
	var running *inprocess.Running
	var current *process
	start := func() {
		current = &process{recorder: recorder, ended: make(chan struct{})}
		running = e.start(func(config *rest.Config) { config.Wrap(current.wrap) })
	}
	start()
	e.beforeCheck = func() {
		select {
		case <-current.ended:
			running.Cut()
			running.Cancel()
			start()
		default:
		}
	}

	var got result
	endStep := func() {
		e.expectRollingOut("web")
		e.rollOut("web")
		got.states = append(got.states, e.state())
	}
	e.create("web", 1)
	endStep()
	e.scale("web", 3)
	endStep()
	e.change("web", func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "other" })
	e.expectGone("web")
	endStep()
	e.Expect(e.client.Delete(e.t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "other"}})).To(Succeed())
	endStep()

	// Events are sent later, and the crash may be at one.
	e.eventually(func(g Gomega) {
		got.events = e.events()
		if plan == (crash{}) {
			g.Expect(got.events).To(Equal(len(got.states)))
		} else {
			recorder.mu.Lock()
			defer recorder.mu.Unlock()
			g.Expect(recorder.crashed).To(BeTrue())
		}
	})
	// The Deployment stays: no garbage collector runs here.
	e.Expect(e.client.Delete(e.t.Context(), e.foo(e, "web"))).To(Succeed())
	e.beforeCheck()
	running.Stop(e.t) // it completes the reconciliations that have begun
	got.states = append(got.states, e.state())
	got.events = e.events()

	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	got.tried, got.sent, got.crashed = recorder.tried, recorder.sent, recorder.crashed
	return got
}

// events is how many Events of the operator are in the namespace.
func (e *testEnv) events() int {
	var events eventsv1.EventList
	e.Expect(e.client.List(e.t.Context(), &events, client.InNamespace(e.namespace))).To(Succeed())
	return len(slices.DeleteFunc(events.Items, func(e eventsv1.Event) bool { return e.ReportingController != "foo-controller" }))
}
