// Package bothsynced is exercise 08a: begin when the cache and the handlers have synced.
package bothsynced

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, factory informers.SharedInformerFactory, count func(difference int), begin func()) error

const (
	patience = 3 * time.Second
	// objects are there when the informer starts.
	objects = 5
	// slow is for how many steps of 100 ms the handler is busy when the cache has synced: longer than a program that does not wait
	// for it, in the same process, takes to begin.
	slow = 15
)

// Check compares the count with the cluster when the work begins.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("what is there is counted, and the work begins", func(b *check.B) {
		c := newCounter(b)
		c.start(b.Context(), work.Entry)
		c.expectBegun()
		c.expectCount(objects)
	})
	ok = ok && t.Behaviour("what is created and deleted later is counted too", func(b *check.B) {
		c := newCounter(b)
		c.start(b.Context(), work.Entry)
		c.expectBegun()
		c.create("late-a")
		c.create("late-b")
		c.expectCount(objects + 2)
		c.remove("late-a")
		c.expectCount(objects + 1)
	})
	if !ok {
		return
	}
	t.Behaviour("a change of a ConfigMap is not counted", func(b *check.B) {
		c := newCounter(b)
		c.start(b.Context(), work.Entry)
		c.expectBegun()
		c.change("object-0")
		// Events come in order: when this one has been counted, the change has been delivered.
		c.remove("object-1")
		c.expectCount(objects - 1)
	})
	t.Behaviour("a deletion that no watch has shown is counted", func(b *check.B) {
		c := newCounter(b)
		c.start(b.Context(), work.Entry)
		c.expectBegun()
		c.wire.Gap(true, func() { c.remove("object-0") })
		c.expectCount(objects - 1)
	})
	t.Behaviour("the work begins after a slow handler has counted everything", func(b *check.B) {
		c := newCounter(b)
		c.gate = make(chan struct{})
		c.start(b.Context(), work.Entry)
		c.holdHandler()
		c.expectBegun()
		if n := c.atBegin(); n != objects {
			b.Fatalf("the work began when %d of %d ConfigMaps had been counted", n, objects)
		}
	})
	t.Behaviour("if the context ends before the list has come, the work does not begin", func(b *check.B) {
		c := newCounter(b)
		c.wire.CutWatches()
		ctx, cancel := context.WithCancel(b.Context())
		c.start(ctx, work.Entry)
		b.Eventually(patience, func() string {
			if len(c.wire.Requests()) == 0 {
				return "no request was sent: the informer does not run"
			}
			return ""
		})
		b.Event("the context ends")
		cancel()
		c.expectEnded()
		if c.hasBegun() {
			b.Fatalf("the list has not come, the context has ended, and the work began")
		}
	})
	t.Behaviour("nor if it ends before everything has been counted", func(b *check.B) { heldUp(b, work.Entry) })
}

// heldUp ends the context while a slow handler has not counted everything.
func heldUp(b *check.B, entry Entry) {
	c := newCounter(b)
	c.gate = make(chan struct{})
	ctx, cancel := context.WithCancel(b.Context())
	c.start(ctx, entry)
	c.expectCached()
	// By now it is the handler that Start waits for: WaitForCacheSync looks every 100 ms.
	time.Sleep(b.Patience(250 * time.Millisecond))
	b.Event("the cache has synced, the handler is busy with its first call, and the context ends")
	cancel()
	c.expectEnded()
	if c.hasBegun() {
		b.Fatalf("not everything had been counted, the context has ended, and the work began")
	}
}

// counter is what the reader's function counts, with the cluster.
type counter struct {
	b       *check.B
	wire    *kube.Wire
	client  typedcorev1.ConfigMapInterface
	factory informers.SharedInformerFactory
	ended   <-chan struct{}
	err     error
	// gate, if it is set, blocks each call of count until it is closed.
	gate chan struct{}

	mu sync.Mutex
	// first is the count when the work began, and begun how often it did.
	count, first, begun int
}

func newCounter(b *check.B) *counter {
	namespace := kube.Namespace(b)
	c := &counter{b: b, wire: kube.NewWire(b), client: kube.Client(b).CoreV1().ConfigMaps(namespace)}
	for i := range objects {
		c.create(fmt.Sprintf("object-%d", i))
	}
	c.factory = informers.NewSharedInformerFactoryWithOptions(c.wire.Client(), 0, informers.WithNamespace(namespace))
	b.Cleanup(c.factory.Shutdown)
	return c
}

func (c *counter) start(ctx context.Context, entry Entry) {
	c.ended = c.b.Go(func() { c.err = entry(ctx, c.factory, c.add, c.begin) })
}

func (c *counter) add(difference int) {
	if c.gate != nil {
		select {
		case <-c.gate:
		case <-c.b.Context().Done():
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count += difference
	c.b.Event("  count(%d): %d", difference, c.count)
}

func (c *counter) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun == 0 {
		c.first = c.count
	}
	c.begun++
	c.b.Event("  begin, when %d have been counted", c.count)
}

func (c *counter) hasBegun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun > 0
}

func (c *counter) atBegin() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}

// holdHandler lets the handler be busy for some time when the cache has synced, or until the work begins.
func (c *counter) holdHandler() {
	c.expectCached()
	c.b.Event("the cache has synced, and the handler is busy with its first call")
	for i := 0; i < slow && !c.hasBegun(); i++ {
		time.Sleep(100 * time.Millisecond)
	}
	close(c.gate)
}

// expectCached waits until the cache has synced. The handlers may not have been called for all of it.
func (c *counter) expectCached() {
	informer := c.factory.Core().V1().ConfigMaps().Informer()
	c.b.Eventually(patience, func() string {
		if !informer.HasSynced() {
			return "the cache has not synced"
		}
		return ""
	})
}

func (c *counter) expectBegun() {
	c.b.Eventually(patience, func() string {
		if c.hasBegun() {
			return ""
		}
		select {
		case <-c.ended:
			// It may have been called since.
			if c.hasBegun() {
				return ""
			}
			if c.err != nil {
				c.b.Fatalf("Start returned without a call of begin, with the error: %v", c.err)
			}
			c.b.Fatalf("Start returned without a call of begin")
		default:
		}
		return "begin was not called"
	})
}

func (c *counter) expectCount(want int) {
	c.b.Eventually(patience, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.begun > 1:
			c.b.Fatalf("begin was called %d times", c.begun)
		case c.count != want:
			return fmt.Sprintf("%d ConfigMaps are there, and the count is %d", want, c.count)
		}
		return ""
	})
}

func (c *counter) expectEnded() {
	c.b.Eventually(patience, func() string {
		select {
		case <-c.ended:
			return ""
		default:
			return "the context has ended, and Start does not return"
		}
	})
}

func (c *counter) create(name string) {
	_, err := c.client.Create(c.b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		c.b.Fatalf("creating a ConfigMap: %v", err)
	}
	c.b.Event("the check creates %s", name)
}

func (c *counter) change(name string) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"changed": "yes"}}
	if _, err := c.client.Update(c.b.Context(), object, metav1.UpdateOptions{}); err != nil {
		c.b.Fatalf("changing a ConfigMap: %v", err)
	}
	c.b.Event("the check changes %s", name)
}

func (c *counter) remove(name string) {
	if err := c.client.Delete(c.b.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.b.Fatalf("deleting a ConfigMap: %v", err)
	}
	c.b.Event("the check deletes %s", name)
}
