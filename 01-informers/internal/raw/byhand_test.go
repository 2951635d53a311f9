package raw

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	testclock "k8s.io/utils/clock/testing"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/testserver"
)

// byHand is a controller on a real API server whose caches hold what the test adds to them, and nothing else: the test decides
// how far they are behind.
type byHand struct {
	*WithT
	*controller
	t         *testing.T
	namespace string
	clients   *clients
	// writes counts the requests that are not reads.
	writes int
	// hang blocks every write of a Deployment until its context ends.
	hang bool
}

// counting is the transport of the controller's requests.
type counting struct {
	http.RoundTripper
	of *byHand
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		c.of.writes++
		if c.of.hang && strings.Contains(request.URL.Path, "/deployments/") {
			<-request.Context().Done()
			return nil, request.Context().Err()
		}
	}
	return c.RoundTripper.RoundTrip(request)
}

func newByHand(t *testing.T) *byHand {
	t.Helper()
	h := &byHand{WithT: NewWithT(t), t: t, namespace: testserver.Namespace(t)}
	config := testserver.Config(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, h} })
	var err error
	h.clients, err = newClients(config)
	h.Expect(err).NotTo(HaveOccurred())
	clock := testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h.controller = &controller{
		foos: h.clients.foos.FooV1alpha1(), deployments: h.clients.kubernetes.AppsV1(),
		recorder: events.NewFakeRecorder(100), queue: newQueue(),
		attempts: foo.NewAttempts(3, clock), clock: clock, image: "example.com/foo:test",
	}
	t.Cleanup(h.queue.ShutDown)
	h.Expect(h.watch(newFactories(t.Context(), h.clients), klog.Logger{})).To(Succeed())
	h.syncCaches()
	return h
}

// create creates a Foo on the server and in the cache.
func (h *byHand) create(name, deploymentName string) *v1alpha1.Foo {
	f := aFoo(name, deploymentName)
	f.Namespace, f.UID, f.ResourceVersion = h.namespace, "", ""
	created, err := h.foos.Foos(h.namespace).Create(h.t.Context(), f, metav1.CreateOptions{})
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(h.fooIndexer.Add(created)).To(Succeed())
	h.writes = 0
	return created
}

// reconcileFoo reconciles a Foo.
func (h *byHand) reconcileFoo(name string) (time.Duration, error) {
	return h.reconcile(h.t.Context(), cache.NewObjectName(h.namespace, name))
}

// expectReconciled reconciles a Foo without an error and without another try.
func (h *byHand) expectReconciled(name string) {
	requeueAfter, err := h.reconcileFoo(name)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(requeueAfter).To(BeZero())
}

// get returns a Foo of the server.
func (h *byHand) get(name string) *v1alpha1.Foo {
	f, err := h.foos.Foos(h.namespace).Get(h.t.Context(), name, metav1.GetOptions{})
	h.Expect(err).NotTo(HaveOccurred())
	return f
}

// deployment returns a Deployment of the server.
func (h *byHand) deployment(name string) *appsv1.Deployment {
	deployment, err := h.deployments.Deployments(h.namespace).Get(h.t.Context(), name, metav1.GetOptions{})
	h.Expect(err).NotTo(HaveOccurred())
	return deployment
}

// updateFoo changes a Foo on the server.
func (h *byHand) updateFoo(name string, mutate func(*v1alpha1.Foo)) {
	f := h.get(name)
	mutate(f)
	_, err := h.foos.Foos(h.namespace).Update(h.t.Context(), f, metav1.UpdateOptions{})
	h.Expect(err).NotTo(HaveOccurred())
}

// deleteDeployment deletes a Deployment on the server.
func (h *byHand) deleteDeployment(name string) {
	h.Expect(h.deployments.Deployments(h.namespace).Delete(h.t.Context(), name, metav1.DeleteOptions{})).To(Succeed())
}

// syncCaches replaces the content of the caches by what the server has.
func (h *byHand) syncCaches() {
	foos, err := h.foos.Foos(h.namespace).List(h.t.Context(), metav1.ListOptions{})
	h.Expect(err).NotTo(HaveOccurred())
	deployments, err := h.deployments.Deployments(h.namespace).List(h.t.Context(), metav1.ListOptions{})
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(h.fooIndexer.Replace(pointers(foos.Items), foos.ResourceVersion)).To(Succeed())
	h.Expect(h.deploymentIndexer.Replace(pointers(deployments.Items), deployments.ResourceVersion)).To(Succeed())
}

func pointers[T any](items []T) []any {
	all := []any{}
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// createNotOwned creates a Deployment that no Foo owns, on the server only.
func (h *byHand) createNotOwned(name string) *appsv1.Deployment {
	labels := map[string]string{"app": "other"}
	created, err := h.deployments.Deployments(h.namespace).Create(h.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "example.com/none"}}},
			},
		},
	}, metav1.CreateOptions{})
	h.Expect(err).NotTo(HaveOccurred())
	return created
}

func (h *byHand) expectReason(name, reason string) {
	h.Expect(foo.ReadyOf(h.get(name).Status).Reason).To(Equal(reason))
}
