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

// crash says at which request of an operator, and how, it is struck down. The zero value is no crash.
type crash struct {
	at request
	// after: the request reaches the server and takes effect, and the answer is lost.
	after bool
}

// request is one that an operator sends in a story: what it is, and the how manieth of its like. Several may be
// under way at once, so a running number would not tell them apart.
type request struct {
	what string
	n    int
}

var errCrash = errors.New("the operator crashed")

// fate counts the requests of one operator after another, and has one of them crash at one of the requests.
type fate struct {
	plan crash

	mu      sync.Mutex
	seen    map[string]int // what was tried
	sent    map[string]int // what the server got
	crashed bool
}

func newFate(plan crash) *fate {
	return &fate{plan: plan, seen: map[string]int{}, sent: map[string]int{}}
}

// life is what the clients of one operator have in common.
type life struct {
	*fate
	// doomed: it sends nothing more. Guarded by mu.
	doomed bool
	// over is closed when what it sent last has taken effect.
	over chan struct{}
}

func newLife(fate *fate) *life { return &life{fate: fate, over: make(chan struct{})} }

// wrap is a transport.WrapperFunc.
func (l *life) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		send, crash := l.decide(req)
		if crash {
			defer close(l.over)
		}
		if !send {
			return nil, errCrash
		}
		answer, err := next.RoundTrip(req)
		if err == nil && crash {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			return nil, errCrash
		}
		return answer, err
	})
}

func (l *life) decide(req *http.Request) (send, crash bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doomed {
		return false, false
	}
	what := shape(req)
	l.seen[what]++
	if l.plan.at == (request{what: what, n: l.seen[what]}) {
		l.doomed, l.crashed, crash = true, true, true
	}
	if send = !crash || l.plan.after; send {
		l.sent[what]++
	}
	return send, crash
}

var namespaceInPath = regexp.MustCompile(`.*/namespaces/[^/]+/`)

// shape is what a request is, whatever its namespace.
func shape(req *http.Request) string {
	method := req.Method
	if parse(req).Watch() {
		method = "WATCH"
	}
	return method + " " + namespaceInPath.ReplaceAllString(req.URL.Path, "")
}

// isWrite tells the writes, each of which is worth a crash, from the reads, which only an operator that
// starts sends, and reflectors.
func isWrite(what string) bool {
	return !strings.HasPrefix(what, http.MethodGet) && !strings.HasPrefix(what, "WATCH")
}

// storyWrites are what the story takes: in each of the first four chapters the Deployment and two of status,
// and in the third the removal of the other Deployment. The Events, one a chapter, come on top.
var storyWrites = map[string]int{
	"PATCH deployments/web":   2,
	"PATCH deployments/other": 2,
	"DELETE deployments/web":  1,
	"PATCH foos/web/status":   8,
}

// TestCrashAtEveryRequest lives through one story (a Foo is created, rolled out, scaled, gets another
// Deployment, has that deleted by someone, and is deleted) once undisturbed, and then with an operator that
// crashes, and another one after it, twice for each write of the story, and once at each read of the start. At
// the end of each chapter the objects are the same, and the API server got each write as often.
func TestCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	for _, implementation := range inprocess.Names() {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			account := inprocess.NewAccount(t)
			undisturbed := tell(newWorld(t, implementation, account), crash{})
			NewWithT(t).Expect(writesBut(undisturbed.sent)).To(Equal(storyWrites))
			plans := plans(undisturbed.seen)
			for _, plan := range plans {
				t.Run(fmt.Sprintf("%s %d after=%t", plan.at.what, plan.at.n, plan.after), func(t *testing.T) {
					t.Parallel()
					g := NewWithT(t)
					told := tell(newWorld(t, implementation, account), plan)
					g.Expect(told.crashed).To(BeTrue(), "the crash never came")
					for i, chapter := range told.chapters {
						g.Expect(chapter).To(Equal(undisturbed.chapters[i]), "chapter %d", i+1)
					}
					g.Expect(writesBut(told.sent)).To(Equal(storyWrites), "something was made twice, or not at all")
					// The one Event that a crash may lose is that of the status just before it.
					g.Expect(told.events).To(And(BeNumerically("<=", undisturbed.events), BeNumerically(">=", undisturbed.events-1)))
				})
			}
			t.Logf("%s: %d crashes: %v", implementation, len(plans), undisturbed.sent)
		})
	}
}

// plans are the crashes to live through.
func plans(seen map[string]int) []crash {
	var all []crash
	for what, count := range seen {
		if !isWrite(what) {
			// Not after: a watch has no end to wait for.
			all = append(all, crash{at: request{what: what, n: 1}})
			continue
		}
		for n := range count {
			at := request{what: what, n: n + 1}
			all = append(all, crash{at: at}, crash{at: at, after: true})
		}
	}
	return all
}

// events are written in the background, and one may be lost.
const eventShape = "POST events"

// writesBut are the writes, without Events. A delete counts once: a cache that has not heard of it yet leads to
// another, which finds nothing.
func writesBut(sent map[string]int) map[string]int {
	writes := map[string]int{}
	for what, count := range sent {
		switch {
		case !isWrite(what), what == eventShape, count == 0:
		case strings.HasPrefix(what, http.MethodDelete):
			writes[what] = 1
		default:
			writes[what] = count
		}
	}
	return writes
}

// told is a story as it went.
type told struct {
	chapters   []end
	events     int
	seen, sent map[string]int
	crashed    bool
}

// tell lives through the story. An operator that has crashed is followed by another at the next look.
func tell(w *world, plan crash) told {
	w.t.Helper()
	fate := newFate(plan)
	var running *inprocess.Running
	var current *life
	begin := func() {
		current = newLife(fate)
		running = w.start(func(config *rest.Config) { config.Wrap(current.wrap) })
	}
	begin()
	w.look = func() {
		select {
		case <-current.over:
			running.Cut()
			running.Cancel()
			begin()
		default:
		}
	}

	var story told
	chapter := func() {
		w.expectRollingOut("web")
		w.rollOut("web")
		story.chapters = append(story.chapters, w.end())
	}
	w.create("web", 1)
	chapter()
	w.scale("web", 3)
	chapter()
	w.change("web", func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "other" })
	w.expectGone("web")
	chapter()
	w.Expect(w.client.Delete(w.t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}})).To(Succeed())
	chapter()

	// Events come late, and a crash may be at one.
	w.soon(func(g Gomega) {
		story.events = w.events()
		if plan == (crash{}) {
			g.Expect(story.events).To(Equal(len(story.chapters)))
		} else {
			fate.mu.Lock()
			defer fate.mu.Unlock()
			g.Expect(fate.crashed).To(BeTrue())
		}
	})
	// What it leaves behind is for the garbage collector, and there is none here.
	w.Expect(w.client.Delete(w.t.Context(), w.foo(w, "web"))).To(Succeed())
	w.look()
	running.Stop(w.t) // it finishes what it has begun
	story.chapters = append(story.chapters, w.end())
	story.events = w.events()

	fate.mu.Lock()
	defer fate.mu.Unlock()
	story.seen, story.sent, story.crashed = fate.seen, fate.sent, fate.crashed
	return story
}

// events is how many Events there are in the namespace.
func (w *world) events() int {
	var events eventsv1.EventList
	w.Expect(w.client.List(w.t.Context(), &events, client.InNamespace(w.namespace))).To(Succeed())
	return len(slices.DeleteFunc(events.Items, func(e eventsv1.Event) bool { return e.ReportingController != "foo-controller" }))
}
