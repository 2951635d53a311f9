package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
)

// gate holds requests up, once it is closed, on their way to the server: until it is opened, or the caller
// gives up.
type gate struct {
	holds func(*http.Request) bool

	mu     sync.Mutex
	opened chan struct{}
	// reached gets a value for each request that is held up.
	reached chan string
}

func newGate(holds func(*http.Request) bool) *gate {
	return &gate{holds: holds, reached: make(chan string, 1000)}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.opened)
	g.opened = nil
}

func (g *gate) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened != nil && g.holds(req) {
			g.reached <- req.Method + " " + req.URL.Path
			select {
			case <-opened:
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The operator is told to end while a pass is between two writes. The pass comes to its end, its Event too,
// no new one begins, the lease is given back, and that it ended in order is what it says.
func TestEndWaitsForThePassUnderWay(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			statuses := newGate(func(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/status") })
			running := inprocess.Start(t, w.account, inprocess.Settings{
				Implementation: implementation, Namespace: w.Namespace, Options: elect,
				Config: func(config *rest.Config) { config.Wrap(statuses.wrap) },
			})
			f := w.create("web", "web-server")
			w.expect(f, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)

			statuses.close()
			w.rollOut("web-server")
			w.Eventually(statuses.reached).WithTimeout(w.Soon).Should(Receive())
			running.Cancel()
			w.Consistently(running.Done()).WithTimeout(500*time.Millisecond).ShouldNot(BeClosed(), "a pass is under way")
			w.create("late", "late")
			w.Consistently(running.Done()).WithTimeout(500*time.Millisecond).ShouldNot(BeClosed(), "a pass is still under way")
			statuses.open()

			w.Expect(running.Wait()).To(Succeed())
			w.expect(f, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
			w.expectEvents(f, available)
			w.Expect(w.holder()).To(BeEmpty(), "the lease is given back")
			w.Expect(w.writes()).NotTo(ContainElement(HaveField("Name", "late")))
		})
	}
}

// An operator whose pass hangs ends all the same.
func TestEndIsBounded(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			statuses := newGate(func(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/status") })
			statuses.close()
			running := inprocess.Start(t, w.account, inprocess.Settings{
				Implementation: implementation, Namespace: w.Namespace, Options: elect,
				Config: func(config *rest.Config) { config.Wrap(statuses.wrap) },
			})
			w.create("web", "web-server")
			w.Eventually(statuses.reached).WithTimeout(w.Soon).Should(Receive())
			running.Cancel()
			// The pod's terminationGracePeriodSeconds.
			w.Eventually(running.Done()).WithTimeout(15 * time.Second).Should(BeClosed())
			w.Expect(running.Wait()).To(Succeed())
			w.Expect(w.holder()).To(BeEmpty(), "the lease is given back")
		})
	}
}

// What waits in the queue when the operator is told to end is left to the next one.
func TestEndLeavesTheQueueToTheNext(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			const workers, many = 4, 20
			w := newTrial(t, implementation)
			deployments := newGate(func(req *http.Request) bool {
				return req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/deployments/")
			})
			deployments.close()
			running := inprocess.Start(t, w.account, inprocess.Settings{
				Implementation: implementation, Namespace: w.Namespace,
				Config: func(config *rest.Config) { config.Wrap(deployments.wrap) },
			})
			var foos []*v1alpha1.Foo
			for i := range many {
				name := fmt.Sprintf("foo-%02d", i)
				foos = append(foos, w.create(name, name))
			}
			w.Eventually(deployments.reached).WithTimeout(w.Soon).Should(HaveLen(workers), "each worker is at it")
			running.Cancel()
			w.Consistently(running.Done()).WithTimeout(500*time.Millisecond).ShouldNot(BeClosed(), "passes are under way")
			deployments.open()
			w.Expect(running.Wait()).To(Succeed())
			w.Expect(count(w.writes())["patch deployments / 201"]).To(Equal(workers))

			w.start()
			for _, f := range foos {
				w.expectAvailable(f, 1)
			}
		})
	}
}

// An operator that still waits for its caches ends at once.
func TestEndBeforeTheCachesAreFull(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			watches := newGate(func(req *http.Request) bool { return strings.Contains(req.URL.RawQuery, "watch=true") })
			watches.close()
			running := inprocess.Start(t, w.account, inprocess.Settings{
				Implementation: implementation, Namespace: w.Namespace, Options: elect,
				Config: func(config *rest.Config) { config.Wrap(watches.wrap) },
			})
			w.Eventually(watches.reached).WithTimeout(w.Soon).Should(Receive())
			running.Cancel()
			w.Eventually(running.Done()).WithTimeout(15 * time.Second).Should(BeClosed())
			w.Expect(running.Wait()).To(Succeed())
			watches.open()
		})
	}
}
