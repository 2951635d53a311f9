package main

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

// onServer starts an informer with one handler on the test server, on a wire that can be cut.
func onServer(t *testing.T, options ...informers.SharedInformerOption) (*session, coreinformers.ConfigMapIndexInformer, *recorder) {
	t.Helper()
	g := NewWithT(t)
	s := &session{wire: newWire(), World: &lesson.World{
		Out: io.Discard, Client: testserver.Client(t), Namespace: testserver.Namespace(t),
	}}
	config := rest.CopyConfig(testserver.Config(t))
	config.Wrap(s.wire.wrap)
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.create(t.Context(), "a", "1")).To(Succeed())

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, append(options, informers.WithNamespace(s.Namespace))...)
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

func TestAMissedDeletionIsATombstoneWithAStaleObject(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s, informer, handler := onServer(t)
	g.Expect(s.wire.cut(t.Context())).To(Succeed())
	g.Expect(s.set(t.Context(), "a", "2")).To(Succeed())
	g.Expect(s.remove(t.Context(), "a")).To(Succeed())
	s.wire.mend()

	g.Eventually(handler.deletions).WithTimeout(longest).Should(HaveLen(1))
	deleted := handler.deletions()[0]
	g.Expect(deleted.FinalStateUnknown).NotTo(BeNil())
	g.Expect(deleted.GetKey()).To(Equal(s.Namespace + "/a"))
	g.Expect(deleted.OptionalObj.Data).To(HaveKeyWithValue("value", "1"), "the update was missed, too")
	g.Expect(informer.GetStore().ListKeys()).To(BeEmpty())
}

// A cast to the object's type panics, or is skipped, on what an untyped handler gets then.
func TestAnUntypedHandlerGetsTheTombstoneItself(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s, informer, _ := onServer(t)
	gone := make(chan any, 1)
	_, err := informer.AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) { gone <- object }}, cache.HandlerOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.wire.cut(t.Context())).To(Succeed())
	g.Expect(s.remove(t.Context(), "a")).To(Succeed())
	s.wire.mend()
	var object any
	g.Eventually(gone).WithTimeout(longest).Should(Receive(&object))
	g.Expect(object).To(BeAssignableToTypeOf(cache.DeletedFinalStateUnknown{}))
}

// An informer knows objects by namespace and name. A delete and a create in one gap are told as an update:
// who cares about identity compares the uids.
func TestAnObjectReplacedDuringAGapIsToldAsAnUpdate(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s, _, handler := onServer(t)
	before := handler.last("a").UID
	g.Expect(s.wire.cut(t.Context())).To(Succeed())
	g.Expect(s.remove(t.Context(), "a")).To(Succeed())
	g.Expect(s.create(t.Context(), "a", "new")).To(Succeed())
	s.wire.mend()
	g.Eventually(func() []string { return handler.of("a") }).WithTimeout(longest).Should(Equal([]string{"added 1", "updated new"}))
	g.Expect(handler.last("a").UID).NotTo(Equal(before))
	g.Expect(handler.deletions()).To(BeEmpty())
}

// Twice for what the informer begins with, once for what a watch brings: a transform must be idempotent.
func TestATransformSeesAnObjectOfTheWatchListTwice(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var calls atomic.Int32
	s, _, handler := onServer(t, informers.WithTransform(func(object any) (any, error) {
		calls.Add(1)
		return strip(object)
	}))
	g.Expect(calls.Load()).To(BeEquivalentTo(2))
	g.Expect(handler.last("a").Data).To(BeEmpty())

	g.Expect(s.set(t.Context(), "a", "2")).To(Succeed())
	g.Eventually(func() int { return handler.count("updated") }).WithTimeout(longest).Should(Equal(1))
	g.Expect(calls.Load()).To(BeEquivalentTo(3))
	g.Expect(handler.last("a").ManagedFields).To(BeEmpty())

	// The server still has it all: a transform is no change.
	whole, err := s.configMaps().Get(t.Context(), "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(whole.Data).To(HaveKeyWithValue("value", "2"))
}

func TestATransformIsSetBeforeTheStart(t *testing.T) {
	t.Parallel()
	_, informer, _ := onServer(t)
	NewWithT(t).Expect(informer.SetTransform(strip)).To(MatchError(ContainSubstring("already started")))
}

func TestStripRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	_, err := strip(&metav1.PartialObjectMetadata{})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("want a ConfigMap")))
}
