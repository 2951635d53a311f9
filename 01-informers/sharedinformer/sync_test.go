package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// bubble is an informer on a fake client, in a synctest bubble: time stands still unless everybody waits.
type bubble struct {
	*testing.T
	client   *fake.Clientset
	factory  informers.SharedInformerFactory
	informer coreinformers.ConfigMapIndexInformer
	start    func()
}

// inBubble runs a test with ConfigMaps a and b, and an informer that has not been started. It is shut down at the end.
func inBubble(t *testing.T, resync time.Duration, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(placed("a"), placed("b"))
		factory := informers.NewSharedInformerFactory(client, resync)
		ctx, cancel := context.WithCancel(t.Context())
		defer factory.Shutdown()
		defer cancel()
		test(&bubble{
			T: t, client: client, factory: factory,
			informer: factory.Core().V1().ConfigMaps().TypedInformer(),
			start:    func() { factory.StartWithContext(ctx) },
		})
	})
}

func placed(name string) *corev1.ConfigMap {
	object := configMap(name, "1")
	object.Namespace = metav1.NamespaceDefault
	return object
}

func (b *bubble) handle(handler *recorder, options ...cache.HandlerOptions) cache.ResourceEventHandlerRegistration {
	b.Helper()
	registration, err := b.informer.AddTypedEventHandler(handler, options...)
	NewWithT(b).Expect(err).NotTo(HaveOccurred())
	return registration
}

// The seed journey waits for the cache. A controller that starts its workers then can look an object up that
// its handlers have not been told of, and an index or a set of expectations that handlers fill is not filled.
func TestSeedQuestion_ASyncedCacheDoesNotMeanThatHandlersWereTold(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		g := NewWithT(b)
		gate := make(chan struct{})
		slow := &recorder{gate: gate}
		registration := b.handle(slow)
		b.start()
		g.Expect(b.factory.WaitForCacheSyncWithContext(b.Context()).AsError()).To(Succeed())
		synctest.Wait()
		g.Expect(b.informer.HasSynced()).To(BeTrue())
		g.Expect(registration.HasSynced()).To(BeFalse())
		g.Expect(slow.count("")).To(BeZero())

		close(gate)
		g.Expect(cache.WaitFor(b.Context(), "", registration.HasSyncedChecker())).To(BeTrue())
		g.Expect(slow.count("added")).To(Equal(2))
	})
}

// The old WaitForCacheSync looks every 100 ms; WaitFor is told.
func TestWaitForDoesNotPoll(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		g := NewWithT(b)
		registration := b.handle(&recorder{})
		begin := time.Now()
		b.start()
		g.Expect(cache.WaitFor(b.Context(), "", b.informer.HasSyncedChecker(), registration.HasSyncedChecker())).To(BeTrue())
		g.Expect(time.Since(begin)).To(BeZero())
	})
}

func TestWaitForSaysFalseWhenTheContextEnds(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		g := NewWithT(b)
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		// Nobody started the informer.
		g.Expect(cache.WaitFor(ctx, "", b.informer.HasSyncedChecker())).To(BeFalse())
		g.Expect(ctx.Err()).To(MatchError(context.DeadlineExceeded))
	})
}

// WaitForCacheSyncWithContext looks at those informers that were started. An informer that is asked for
// afterwards is in nobody's wait, and StartWithContext has to be called again for it.
func TestAnInformerAskedForAfterTheStartIsNotStarted(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		g := NewWithT(b)
		b.start()
		secrets := b.factory.Core().V1().Secrets().TypedInformer()
		result := b.factory.WaitForCacheSyncWithContext(b.Context())
		g.Expect(result.AsError()).To(Succeed())
		g.Expect(result.Synced).To(HaveLen(1))
		synctest.Wait()
		g.Expect(secrets.HasSynced()).To(BeFalse())

		b.start()
		g.Expect(b.factory.WaitForCacheSyncWithContext(b.Context()).Synced).To(HaveLen(2))
		g.Expect(secrets.HasSynced()).To(BeTrue())
	})
}

// A handler that comes late is told of all that there is, as additions of an initial list, and has a sync of
// its own.
func TestALateHandlerIsToldOfAllThereIs(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		g := NewWithT(b)
		b.start()
		g.Expect(cache.WaitFor(b.Context(), "", b.informer.HasSyncedChecker())).To(BeTrue())
		late := &recorder{}
		registration := b.handle(late)
		g.Expect(cache.WaitFor(b.Context(), "", registration.HasSyncedChecker())).To(BeTrue())
		g.Expect(late.all()).To(HaveLen(2))
		for _, told := range late.all() {
			g.Expect(told.kind).To(Equal("added"))
			g.Expect(told.initial).To(BeTrue())
		}

		_, err := b.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(b.Context(), configMap("c", "1"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		synctest.Wait()
		g.Expect(late.all()).To(HaveLen(3))
		g.Expect(late.all()[2].initial).To(BeFalse())
	})
}

// RemoveEventHandler returns at once; ShutDownEventHandler waits for the calls that are queued.
func TestShutDownEventHandlerWaitsForTheHandler(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		g := NewWithT(b)
		gate := make(chan struct{})
		slow := &recorder{gate: gate}
		registration := b.handle(slow)
		b.start()
		g.Expect(cache.WaitFor(b.Context(), "", b.informer.HasSyncedChecker())).To(BeTrue())
		synctest.Wait()
		g.Expect(b.informer.RemoveEventHandler(registration)).To(Succeed())
		g.Expect(slow.running()).To(Equal(1))

		done := make(chan error, 1)
		go func() { done <- cache.ShutDownEventHandler(b.informer, registration) }()
		synctest.Wait()
		g.Expect(done).NotTo(Receive())
		close(gate)
		g.Expect(<-done).To(Succeed())
		g.Expect(slow.running()).To(BeZero())
	})
}

func TestAFactoryMakesOneInformerPerType(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		g := NewWithT(b)
		g.Expect(b.factory.Core().V1().ConfigMaps().Informer().GetIndexer()).To(BeIdenticalTo(b.informer.GetIndexer()))
		g.Expect(b.factory.Core().V1().Secrets().Informer().GetIndexer()).NotTo(BeIdenticalTo(b.informer.GetIndexer()))
	})
}
