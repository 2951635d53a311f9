package raw

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	testclock "k8s.io/utils/clock/testing"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	versionedfake "example.com/workbook/01-informers/internal/generated/clientset/versioned/fake"
)

// watching is a controller without workers that watches clientsets without a server, in a synctest bubble.
type watching struct {
	*WithT
	*controller
	clients *clients
}

func watch(t *testing.T, q queue, deployments []*appsv1.Deployment, foos ...*v1alpha1.Foo) *watching {
	t.Helper()
	t.Cleanup(q.ShutDown)
	w := &watching{WithT: NewWithT(t), clients: &clients{
		kubernetes: fake.NewClientset(),
		// Not NewClientset: its tracking of field owners lacks the kinds of CRDs.
		foos: versionedfake.NewSimpleClientset(),
	}}
	for _, f := range foos {
		_, err := w.clients.foos.FooV1alpha1().Foos("space").Create(t.Context(), f, metav1.CreateOptions{})
		w.Expect(err).NotTo(HaveOccurred())
	}
	for _, deployment := range deployments {
		_, err := w.clients.kubernetes.AppsV1().Deployments("space").Create(t.Context(), deployment, metav1.CreateOptions{})
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.controller = &controller{queue: q, clock: &testclock.FakePassiveClock{}}
	factories := newFactories(t.Context(), w.clients)
	w.Expect(w.controller.watch(factories, klog.Logger{})).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	factories.start(ctx)
	t.Cleanup(func() {
		cancel()
		factories.shutdown()
	})
	return w
}

// enqueued returns the names of the keys in the queue, and removes them.
func (w *watching) enqueued() []string {
	synctest.Wait()
	names := []string{}
	for range w.queue.Len() {
		key, _ := w.queue.Get()
		w.queue.Done(key)
		names = append(names, key.Name)
	}
	slices.Sort(names)
	return names
}

// aDeployment has the Foo as its controller, unless that is nil.
func aDeployment(name string, owner *v1alpha1.Foo) *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "space", ResourceVersion: "1"}}
	if owner != nil {
		deployment.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.SchemeGroupVersion.WithKind("Foo"))}
	}
	return deployment
}

// slowQueue blocks every handler until it is opened.
type slowQueue struct {
	queue
	opened chan struct{}
}

func (q slowQueue) Add(key cache.ObjectName) {
	<-q.opened
	q.queue.Add(key)
}

// A cache is synced before its handlers: here the caches are full and the queue is empty.
func TestWaitForSyncIncludesTheHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blocked := slowQueue{newQueue(), make(chan struct{})}
		w := watch(t, blocked, nil, aFoo("one", "a"), aFoo("two", "b"), aFoo("three", "c"))
		synced := make(chan bool, 1)
		go func() { synced <- w.waitForSync(t.Context()) }()
		synctest.Wait()
		w.Expect(w.fooIndexer.ListKeys()).To(HaveLen(3))
		w.Expect(w.queue.Len()).To(BeZero())
		w.Expect(synced).NotTo(Receive())
		w.Expect(slices.ContainsFunc(w.synced, cache.IsDone)).To(BeTrue(), "the caches are synced")

		close(blocked.opened)
		synctest.Wait()
		w.Expect(synced).To(Receive(BeTrue()))
		w.Expect(w.enqueued()).To(Equal([]string{"one", "three", "two"}))
	})
}

// A new list after a broken watch delivers every object to the handlers. It delivers a deletion that was missed with the key
// and the object of the cache, or with the key only.
func TestHandlersAfterABrokenWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		owner, naming := aFoo("owner", "a"), aFoo("naming", "shared")
		w := watch(t, newQueue(), nil, owner, naming)
		w.enqueued()
		deployment := aDeployment("shared", owner)
		w.fooHandler().OnUpdate(owner, owner.DeepCopy())
		w.deploymentHandler().OnUpdate(deployment, deployment.DeepCopy())
		w.Expect(w.enqueued()).To(BeEmpty(), "nothing changed")

		missed := &cache.DeletedFinalStateUnknown{Key: "space/shared", Obj: deployment}
		w.deploymentHandler().OnDelete(cache.DeletedObject[*appsv1.Deployment]{OptionalObj: deployment, FinalStateUnknown: missed})
		w.Expect(w.enqueued()).To(Equal([]string{"naming", "owner"}))
		missed.Obj = nil
		w.deploymentHandler().OnDelete(cache.DeletedObject[*appsv1.Deployment]{FinalStateUnknown: missed})
		w.Expect(w.enqueued()).To(Equal([]string{"naming"}))
		w.fooHandler().OnDelete(cache.DeletedObject[*v1alpha1.Foo]{
			FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: "space/gone"},
		})
		w.Expect(w.enqueued()).To(Equal([]string{"gone"}))
	})
}

func TestDeploymentsNotOwnedAreReducedInTheCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		other := aDeployment("other", nil)
		other.Spec.Replicas = new(int32(3))
		w := watch(t, newQueue(), []*appsv1.Deployment{other})
		synctest.Wait()
		cached, err := w.deploymentLister.Deployments("space").Get("other")
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(cached.Spec.Replicas).To(BeNil())
	})
}
