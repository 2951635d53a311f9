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

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestProgram(t *testing.T) {
	testserver.ExpectOutput(t, program)
}

// bubble is an informer with a fake client in a synctest bubble, where time advances only while every
// goroutine waits.
type bubble struct {
	*testing.T
	client   *fake.Clientset
	factory  informers.SharedInformerFactory
	informer coreinformers.ConfigMapIndexInformer
	start    func()
}

// inBubble runs a test with the ConfigMaps a and b and an informer that is not started. The informer is shut down
// at the end.
func inBubble(t *testing.T, resync time.Duration, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(inDefault("a"), inDefault("b"))
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

// inDefault returns a ConfigMap in the namespace default.
func inDefault(name string) *corev1.ConfigMap {
	object := lesson.ConfigMap(name, "1")
	object.Namespace = metav1.NamespaceDefault
	return object
}

func (b *bubble) handle(handler *recorder) cache.ResourceEventHandlerRegistration {
	b.Helper()
	registration, err := b.informer.AddTypedEventHandler(handler)
	NewWithT(b).Expect(err).NotTo(HaveOccurred())
	return registration
}

// The study journal waits for the cache. A controller that then starts its workers can read an object of which
// its handlers have not been notified, and what the handlers maintain, such as expectations, is incomplete.
func TestSeedQuestion_ASyncedCacheDoesNotMeanThatHandlersWereNotified(t *testing.T) {
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

// WaitForCacheSync polls every 100 ms. WaitFor waits on a channel.
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

// WaitForCacheSyncWithContext waits for the informers that were started. For an informer that is requested
// later, StartWithContext has to be called again.
func TestAnInformerRequestedAfterTheStartIsNotStarted(t *testing.T) {
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
