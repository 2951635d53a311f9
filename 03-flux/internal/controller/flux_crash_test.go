package controller

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// fluxCrash says at which of its requests, and how, the Flux controller is struck down. The zero value is no
// crash.
type fluxCrash struct {
	at int
	// after: the request reaches the server and takes effect, and the answer is lost.
	after bool
}

var errFluxCrash = errors.New("the operator crashed")

// fluxRequests counts the requests that go through it, reads included, and fails one of them, once.
type fluxRequests struct {
	next  http.RoundTripper
	crash fluxCrash
	seen  []string
}

var upToNamespace = regexp.MustCompile(`.*/namespaces/[^/]+/`)

func (f *fluxRequests) RoundTrip(req *http.Request) (*http.Response, error) {
	f.seen = append(f.seen, req.Method+" "+upToNamespace.ReplaceAllString(req.URL.Path, ""))
	if len(f.seen) != f.crash.at {
		return f.next.RoundTrip(req)
	}
	if f.crash.after {
		answer, err := f.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	return nil, errFluxCrash
}

// TestFluxCrashAtEveryRequest lives through one story (a Flux runs, fails, is restarted, suspended, resumed,
// completes, and its TTL passes) once undisturbed, and then for each request that the Flux controller sends in it:
// once failed before it is sent, and once, if it writes, after it took effect. The objects at the end are the same,
// and no attempt was begun more often.
func TestFluxCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	undisturbed, requests := fluxStory(t, fluxCrash{})
	if len(requests) < 30 {
		t.Fatalf("the story takes only %d requests: it does not test what it should", len(requests))
	}
	for n, what := range requests {
		for _, after := range []bool{false, true} {
			if after && strings.HasPrefix(what, http.MethodGet) {
				continue
			}
			t.Run(fmt.Sprintf("%d %s after=%t", n+1, what, after), func(t *testing.T) {
				end, seen := fluxStory(t, fluxCrash{at: n + 1, after: after})
				g := NewWithT(t)
				g.Expect(seen[n]).To(Equal(what), "the crash came elsewhere")
				g.Expect(end).To(Equal(undisturbed))
			})
		}
	}
	t.Logf("%d requests", len(requests))
}

// fluxEnd is all that a story leaves behind, without what differs from run to run.
type fluxEnd struct {
	setup    v1alpha1.FluxSetupSpec
	status   v1alpha1.FluxStatus
	setups   int
	restarts []string
}

func fluxStory(t *testing.T, crash fluxCrash) (fluxEnd, []string) {
	t.Helper()
	w := newFluxWorld(t)
	requests := &fluxRequests{crash: crash}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		requests.next = next
		return requests
	})
	// The mapper and its discovery requests are not the controller's own.
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: w.client.RESTMapper()})
	w.Expect(err).NotTo(HaveOccurred())
	use := func() { w.use(c); w.reconciler.APIReader = c }
	use()
	// A pass that fails is followed by a new reconciler, which remembers nothing: that is what a restart is.
	settle := func() {
		for range 2 {
			if _, err := w.tryReconcile(); err != nil {
				use()
				w.reconcile()
			}
		}
	}
	var end fluxEnd
	step := func(says func(*v1alpha1.FluxSetupStatus)) {
		w.whisper(says)
		settle()
		end.restarts = append(end.restarts, conditionOf(w.flux().Status, v1alpha1.ConditionRestarting).Message)
	}
	change := func(change func(*v1alpha1.FluxSpec)) {
		flux := w.flux()
		change(&flux.Spec)
		w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
		settle()
	}

	flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(withRestarts(3))}
	w.Expect(w.client.Create(w.ctx, flux)).To(Succeed())
	settle()
	w.launch()
	step(saysRunning)
	step(saysCommandFailed)
	w.launch()
	step(saysRunning)
	change(isSuspended)
	step(saysNothingLeft)
	change(isResumed)
	w.launch()
	step(saysRunning)
	step(saysSucceeded)
	change(withTTL(0))
	step(saysNothingLeft)

	var all v1alpha1.FluxSetupList
	w.Expect(w.client.List(w.ctx, &all, client.InNamespace(w.namespace))).To(Succeed())
	end.setups, end.setup, end.status = len(all.Items), w.setup().Spec, w.flux().Status
	w.Expect(end.status.SetupRef.UID).To(Equal(string(w.setup().UID)))
	w.Expect(end.setup.Attempt).To(Equal(int32(3)))
	w.Expect(end.setup.Restarts).To(Equal(int32(1)))
	end.setup.Launch.Nonce, end.status.SetupRef = "", nil
	return end, requests.seen
}
