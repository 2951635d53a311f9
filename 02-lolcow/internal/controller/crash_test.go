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

// crash says at which request of the reconciler, and how, it is struck down. The zero value is no crash.
type crash struct {
	at request
	// after: the request reaches the server and takes effect, and the answer is lost.
	after bool
}

// request is one that a reconciler sends in a story: what it is, and the how manieth of its like, so that a
// failing test names it.
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
		answer, err := c.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
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

// TestCrashAtEveryRequest lives through one story (a Lolcow is created, rolled out, changed, and has its
// Service deleted by someone) once undisturbed, and then twice for each request that the reconciler
// sends in it. The objects at the end are the same.
func TestCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	undisturbed, seen := story(t, crash{}, 30020)
	requests := 0
	for what, count := range seen {
		requests += count
		for n := 1; n <= count; n++ {
			for _, after := range []bool{false, true} {
				// A sample, which is another one each time, shows most of it.
				if testing.Short() && rand.IntN(4) > 0 {
					continue
				}
				plan := crash{at: request{what: what, n: n}, after: after}
				t.Run(fmt.Sprintf("%s %d after=%t", what, n, after), func(t *testing.T) {
					end, seen := story(t, plan, 30020)
					g := NewWithT(t)
					g.Expect(seen[what]).To(BeNumerically(">=", n), "the crash never came")
					g.Expect(end).To(Equal(undisturbed))
				})
			}
		}
	}
	if requests < 20 {
		t.Fatalf("the story takes only %d requests: it does not test what it should", requests)
	}
	t.Logf("%d requests, each failed in two ways", requests)
}

// end is all that a story leaves behind, without what differs from run to run.
type end struct {
	spec       v1alpha1.LolcowSpec
	status     v1alpha1.LolcowStatus
	deployment appsv1.DeploymentSpec
	service    corev1.ServiceSpec
	children   int
}

func story(t *testing.T, plan crash, port int32) (end, map[string]int) {
	t.Helper()
	w := newWorld(t)
	transport := &crashingTransport{plan: plan, seen: map[string]int{}}
	w.reconciler = w.crashing(transport)

	w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(port)}))).To(Succeed())
	w.settle()
	w.rollOut("cow")
	w.settle()
	lolcow := w.get("cow")
	lolcow.Spec.Greeting, lolcow.Spec.Port = "Baa", new(port+1)
	w.Expect(w.client.Update(w.ctx, lolcow)).To(Succeed())
	w.settle()
	w.rollOut("cow")
	w.settle()
	w.Expect(w.client.Delete(w.ctx, w.service())).To(Succeed())
	w.awaitFreePort(port + 1)
	w.settle()

	lolcow = w.get("cow")
	deployment, service := w.deployment(), w.service()
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	w.Expect(w.client.List(w.ctx, &deployments, client.InNamespace(w.namespace))).To(Succeed())
	w.Expect(w.client.List(w.ctx, &services, client.InNamespace(w.namespace))).To(Succeed())
	for i := range lolcow.Status.Conditions {
		lolcow.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil

	// The ports of this story are wanted by the next one.
	w.Expect(w.client.Delete(w.ctx, service)).To(Succeed())
	w.awaitFreePort(port + 1)
	return end{
		spec: lolcow.Spec, status: lolcow.Status,
		deployment: deployment.Spec, service: service.Spec,
		children: len(deployments.Items) + len(services.Items),
	}, transport.seen
}

// awaitFreePort waits until the API server would give a port to a Service: it frees one a little after it has announced
// that its Service is gone, and a story must not depend on how long after.
func (w *world) awaitFreePort(port int32) {
	probe := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "probe"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}},
	}
	w.Eventually(func() error {
		return w.client.Create(w.ctx, probe.DeepCopy(), client.DryRunAll)
	}).WithTimeout(30 * time.Second).Should(Succeed())
}

// crashing is a reconciler whose every request, reads included, goes through the transport.
func (w *world) crashing(transport *crashingTransport) *LolcowReconciler {
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		transport.next = next
		return transport
	})
	// The mapper and its discovery requests are not the controller's own.
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: w.client.RESTMapper()})
	w.Expect(err).NotTo(HaveOccurred())
	return w.newReconciler(c)
}

// settle reconciles until a pass asks for nothing more. A pass that fails is followed by a new
// reconciler, which remembers nothing: that is what a restart is.
func (w *world) settle() {
	for range 20 {
		result, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
		switch {
		case err != nil:
			w.reconciler = w.newReconciler(w.reconciler.Client)
		case result.RequeueAfter == 0:
			return
		}
	}
	w.Expect(errors.New("it never asked for nothing more")).NotTo(HaveOccurred(), "the reconciler does not settle")
}
