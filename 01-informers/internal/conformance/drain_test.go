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

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// gate blocks requests, once it is closed, until it is opened or their context ends.
type gate struct {
	blocks func(*http.Request) bool

	mu     sync.Mutex
	opened chan struct{}
	// reached gets a value for each request that is blocked.
	reached chan string
}

func newGate(blocks func(*http.Request) bool) *gate {
	return &gate{blocks: blocks, reached: make(chan string, 1000)}
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
		if opened != nil && g.blocks(req) {
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

func isStatusWrite(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/status") }

// The operator is stopped while a reconciliation is between two writes. The reconciliation ends with its Event, no other one
// begins, the lease is released, and the operator returns no error.
func TestShutdownWaitsForTheReconciliationUnderWay(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		statuses := newGate(isStatusWrite)
		running := e.startWith(statuses.wrap, elect)
		f := e.create("web", "web-server")
		e.expect(f, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)

		statuses.close()
		e.rollOut("web-server")
		e.Eventually(statuses.reached).WithTimeout(e.Soon).Should(Receive())
		running.Cancel()
		e.Consistently(running.Done()).WithTimeout(500*time.Millisecond).ShouldNot(BeClosed(), "a reconciliation is under way")
		e.create("late", "late")
		e.Consistently(running.Done()).WithTimeout(500*time.Millisecond).ShouldNot(BeClosed(), "it is still under way")
		e.Expect(e.holder()).NotTo(BeEmpty(), "the lease is held until then")
		statuses.open()

		e.Expect(running.Wait()).To(Succeed())
		e.expect(f, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
		e.expectEvents(f, available)
		e.Expect(e.holder()).To(BeEmpty(), "the lease is released")
		e.Expect(e.writes()).NotTo(ContainElement(HaveField("Name", "late")))
	})
}

// A reconciliation that hangs does not prevent the shutdown.
func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		statuses := newGate(isStatusWrite)
		statuses.close()
		running := e.startWith(statuses.wrap, elect)
		e.create("web", "web-server")
		e.Eventually(statuses.reached).WithTimeout(e.Soon).Should(Receive())
		running.Cancel()
		// The pod's terminationGracePeriodSeconds.
		e.Eventually(running.Done()).WithTimeout(15 * time.Second).Should(BeClosed())
		e.Expect(running.Wait()).To(Succeed())
		e.Expect(e.holder()).To(BeEmpty(), "the lease is released")
	})
}

// The next operator reconciles what waits in the queue when an operator is stopped.
func TestShutdownLeavesTheQueueToTheNext(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		const workers, many = 4, 20
		deployments := newGate(func(req *http.Request) bool {
			return req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/deployments/")
		})
		deployments.close()
		running := e.startWith(deployments.wrap)
		var foos []*v1alpha1.Foo
		for i := range many {
			name := fmt.Sprintf("foo-%02d", i)
			foos = append(foos, e.create(name, name))
		}
		e.Eventually(deployments.reached).WithTimeout(e.Soon).Should(HaveLen(workers), "each worker is busy")
		running.Cancel()
		e.Consistently(running.Done()).WithTimeout(500*time.Millisecond).ShouldNot(BeClosed(), "reconciliations are under way")
		deployments.open()
		e.Expect(running.Wait()).To(Succeed())
		e.Expect(count(e.writes())["patch deployments / 201"]).To(Equal(workers))

		e.start()
		for _, f := range foos {
			e.expectAvailable(f, 1)
		}
	})
}

// An operator that waits for its caches ends at once.
func TestShutdownBeforeTheCachesAreFull(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		watches := newGate(func(req *http.Request) bool { return strings.Contains(req.URL.RawQuery, "watch=true") })
		watches.close()
		running := e.startWith(watches.wrap, elect)
		e.Eventually(watches.reached).WithTimeout(e.Soon).Should(Receive())
		running.Cancel()
		e.Eventually(running.Done()).WithTimeout(15 * time.Second).Should(BeClosed())
		e.Expect(running.Wait()).To(Succeed())
		watches.open()
	})
}
