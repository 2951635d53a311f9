package controller

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// crash says at which request of the reconciler, and how, it is struck down.
type crash struct {
	at int
	// after: the request reaches the server and takes effect, and the answer is lost.
	after bool
}

var errCrash = errors.New("the operator crashed")

// crashingTransport counts the requests that go through it and fails one of them, once.
type crashingTransport struct {
	next  http.RoundTripper
	plan  crash
	count int
}

func (c *crashingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	c.count++
	if c.count != c.plan.at {
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

// TestCrashAtEveryRequest lives through one story (a Lolcow is created, rolled out, changed, and has its
// Service deleted by someone) once undisturbed, and then twice for each request that the reconciler
// sends in it. The objects at the end are the same.
func TestCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	undisturbed, requests := story(t, crash{}, 30710)
	if requests < 20 {
		t.Fatalf("the story takes only %d requests: it does not test what it should", requests)
	}
	t.Logf("%d requests, each failed in two ways", requests)
	for at := 1; at <= requests; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("request %d, after=%t", at, after), func(t *testing.T) {
				end, count := story(t, crash{at: at, after: after}, 30710)
				g := NewWithT(t)
				g.Expect(count).To(BeNumerically(">=", at), "the crash never came")
				g.Expect(end).To(Equal(undisturbed))
			})
		}
	}
}

// end is all that a story leaves behind, without what differs from run to run.
type end struct {
	spec       v1alpha1.LolcowSpec
	status     v1alpha1.LolcowStatus
	deployment appsv1.DeploymentSpec
	service    corev1.ServiceSpec
	children   int
}

func story(t *testing.T, plan crash, port int32) (end, int) {
	w := newWorld(t)
	transport := &crashingTransport{plan: plan}
	w.reconciler = w.crashing(transport)

	w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo", Port: ptr.To(port)}))).To(Succeed())
	w.settle(transport)
	w.rollOut("cow")
	w.settle(transport)
	lolcow := w.get("cow")
	lolcow.Spec.Greeting, lolcow.Spec.Port = "Baa", ptr.To(port+1)
	w.Expect(w.client.Update(w.ctx, lolcow)).To(Succeed())
	w.settle(transport)
	w.rollOut("cow")
	w.settle(transport)
	w.Expect(w.client.Delete(w.ctx, w.service("cow"))).To(Succeed())
	w.settle(transport)

	lolcow = w.get("cow")
	deployment, service := w.deployment("cow"), w.service("cow")
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
	return end{
		spec: lolcow.Spec, status: lolcow.Status,
		deployment: deployment.Spec, service: service.Spec,
		children: len(deployments.Items) + len(services.Items),
	}, transport.count
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
func (w *world) settle(transport *crashingTransport) {
	for range 20 {
		result, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
		switch {
		case err != nil:
			w.reconciler = w.newReconciler(w.reconciler.Client)
		case result.RequeueAfter == 0:
			return
		}
	}
	w.Expect(transport.count).To(BeNil(), "the reconciler does not settle")
}
