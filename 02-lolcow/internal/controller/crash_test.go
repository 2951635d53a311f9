package controller

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// crash is the request of the reconciler at which it crashes, and how. The zero value is no crash.
type crash struct {
	at request
	// after: the request reaches the server and takes effect, and the response is lost.
	after bool
}

// request identifies a request of the reconciler by its method and path, and by how many of these it has sent, so
// that a failing test names it.
type request struct {
	what string
	n    int
}

var errCrash = errors.New("the operator crashed")

// crashingTransport knows the requests that go through it and fails one of them, once.
type crashingTransport struct {
	next http.RoundTripper
	plan crash

	mu   sync.Mutex
	seen map[string]int
}

func (c *crashingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.number(req) != c.plan.at {
		return c.next.RoundTrip(req)
	}
	if c.plan.after {
		response, err := c.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	return nil, errCrash
}

var namespaceInPath = regexp.MustCompile(`.*/namespaces/[^/]+/`)

func (c *crashingTransport) number(req *http.Request) request {
	c.mu.Lock()
	defer c.mu.Unlock()
	what := req.Method + " " + namespaceInPath.ReplaceAllString(req.URL.Path, "")
	c.seen[what]++
	return request{what: what, n: c.seen[what]}
}

// TestCrashAtEveryRequest runs story once without a crash, and then twice for each request that the reconciler sent
// in that run: once with a crash before the request, and once with a crash after it took effect. The objects at the
// end are the same.
func TestCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	undisturbed, seen := story(t, crash{}, 30020)
	requests := 0
	for what, count := range seen {
		requests += count
		for n := 1; n <= count; n++ {
			for _, after := range []bool{false, true} {
				// A random quarter of the cases detects most mistakes.
				if testing.Short() && rand.IntN(4) > 0 {
					continue
				}
				plan := crash{at: request{what: what, n: n}, after: after}
				t.Run(fmt.Sprintf("%s %d after=%t", what, n, after), func(t *testing.T) {
					end, seen := story(t, plan, 30020)
					g := NewWithT(t)
					g.Expect(seen[what]).To(BeNumerically(">=", n), "the crash did not happen")
					g.Expect(end).To(Equal(undisturbed))
				})
			}
		}
	}
	if requests < 20 {
		t.Fatalf("the story has only %d requests: it does not test what it should", requests)
	}
	t.Logf("%d requests, and two crashes at each", requests)
}

// end is all that a story leaves behind, without what differs from run to run.
type end struct {
	spec       v1alpha1.LolcowSpec
	status     v1alpha1.LolcowStatus
	deployment appsv1.DeploymentSpec
	service    corev1.ServiceSpec
	dependents int
}

func story(t *testing.T, plan crash, port int32) (end, map[string]int) {
	t.Helper()
	f := newTestEnv(t)
	transport := &crashingTransport{plan: plan, seen: map[string]int{}}
	f.reconciler = f.crashing(transport)

	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(port)}))).To(Succeed())
	f.settle()
	f.rollOut("cow")
	f.settle()
	lolcow := f.get("cow")
	lolcow.Spec.Greeting, lolcow.Spec.Port = "Baa", new(port+1)
	f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
	f.settle()
	f.rollOut("cow")
	f.settle()
	f.Expect(f.client.Delete(f.ctx, f.service())).To(Succeed())
	f.awaitFreePort(port + 1)
	f.settle()

	lolcow = f.get("cow")
	deployment, service := f.deployment(), f.service()
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	f.Expect(f.client.List(f.ctx, &deployments, client.InNamespace(f.namespace))).To(Succeed())
	f.Expect(f.client.List(f.ctx, &services, client.InNamespace(f.namespace))).To(Succeed())
	for i := range lolcow.Status.Conditions {
		lolcow.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil

	// The next run uses the same ports.
	f.Expect(f.client.Delete(f.ctx, service)).To(Succeed())
	f.awaitFreePort(port + 1)
	return end{
		spec: lolcow.Spec, status: lolcow.Status,
		deployment: deployment.Spec, service: service.Spec,
		dependents: len(deployments.Items) + len(services.Items),
	}, transport.seen
}

// awaitFreePort waits until the API server would give a port to a Service: it frees one a little after it has announced
// that its Service is gone, and a story must not depend on how long after.
func (f *testEnv) awaitFreePort(port int32) {
	probe := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}},
	}
	f.Eventually(func() error {
		return f.client.Create(f.ctx, probe.DeepCopy(), client.DryRunAll)
	}).WithTimeout(30 * time.Second).Should(Succeed())
}

// crashing is a reconciler whose every request, reads included, goes through the transport.
func (f *testEnv) crashing(transport *crashingTransport) *LolcowReconciler {
	config := rest.CopyConfig(f.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		transport.next = next
		return transport
	})
	// The mapper and its discovery requests are not the controller's own.
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	return f.newReconciler(c)
}

// settle calls Reconcile until it does not ask for a requeue. After an error it continues with a new reconciler, which
// has nothing in memory, because a crash is followed by a restart.
func (f *testEnv) settle() {
	for range 20 {
		result, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
		switch {
		case err != nil:
			f.reconciler = f.newReconciler(f.reconciler.Client)
		case result.RequeueAfter == 0:
			return
		}
	}
	f.Expect(errors.New("each reconciliation asked for a requeue")).NotTo(HaveOccurred(), "the reconciler does not settle")
}
