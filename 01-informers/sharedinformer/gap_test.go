package main

import (
	"context"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/testserver"
)

// onServer starts an informer with one handler on the test server. The test can cut the informer's connections: session.link.
func onServer(t *testing.T, options ...informers.SharedInformerOption) (*session, coreinformers.ConfigMapIndexInformer, *recorder) {
	t.Helper()
	g := NewWithT(t)
	s := newSession(testserver.LessonEnv(t))
	s.CreateConfigMap(t.Context(), "a", "1")

	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, append(options, informers.WithNamespace(s.Namespace))...)
	informer, handler := factory.Core().V1().ConfigMaps().TypedInformer(), &recorder{}
	registration, err := informer.AddTypedEventHandler(handler)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(cancel)
	factory.StartWithContext(ctx)
	g.Expect(cache.WaitFor(ctx, "", registration.HasSyncedChecker())).To(BeTrue())
	return s, informer, handler
}

// For a deletion that the watch missed, an untyped handler gets a DeletedFinalStateUnknown, on which a type assertion to the
// type of the object fails.
func TestAnUntypedHandlerGetsTheTombstoneItself(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s, informer, _ := onServer(t)
	deleted := make(chan any, 1)
	_, err := informer.AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) { deleted <- object }}, cache.HandlerOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	s.link.Cut()
	s.DeleteConfigMap(t.Context(), "a")
	s.link.Restore()
	var object any
	g.Eventually(deleted).WithTimeout(longest).Should(Receive(&object))
	g.Expect(object).To(BeAssignableToTypeOf(cache.DeletedFinalStateUnknown{}))
	g.Expect(object.(cache.DeletedFinalStateUnknown).Key).To(Equal(s.Namespace + "/a"))
	g.Expect(informer.GetStore().ListKeys()).To(BeEmpty())
}

// An informer identifies objects by namespace and name. A delete and a create that the watch missed are
// delivered as one update. A controller for which the identity matters compares the uids.
func TestAnObjectReplacedDuringAGapIsDeliveredAsAnUpdate(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s, _, handler := onServer(t)
	g.Expect(handler.all()[0].initial).To(BeTrue())
	before := handler.last("a").UID
	s.link.Cut()
	s.DeleteConfigMap(t.Context(), "a")
	s.CreateConfigMap(t.Context(), "a", "new")
	s.link.Restore()
	g.Eventually(func() []string { return handler.of("a") }).WithTimeout(longest).Should(Equal([]string{"added 1", "updated new"}))
	g.Expect(handler.last("a").UID).NotTo(Equal(before))
	g.Expect(handler.deletions()).To(BeEmpty())
}

// A transform is called twice for an object of the initial list and once for an object of a watch event, and so it
// must be idempotent.
func TestATransformIsCalledTwiceForAnObjectOfTheStreamingList(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var calls atomic.Int32
	s, _, handler := onServer(t, informers.WithTransform(func(object any) (any, error) {
		calls.Add(1)
		return strip(object)
	}))
	g.Expect(calls.Load()).To(BeEquivalentTo(2))
	g.Expect(handler.last("a").Data).To(BeEmpty())

	s.UpdateConfigMap(t.Context(), "a", "2")
	g.Eventually(func() int { return handler.count("updated") }).WithTimeout(longest).Should(Equal(1))
	g.Expect(calls.Load()).To(BeEquivalentTo(3))
	g.Expect(handler.last("a").ManagedFields).To(BeEmpty())

	// The object on the server is unchanged.
	whole, err := s.ConfigMaps().Get(t.Context(), "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(whole.Data).To(HaveKeyWithValue("value", "2"))
}
