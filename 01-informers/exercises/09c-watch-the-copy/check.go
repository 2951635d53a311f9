// Package watchthecopy is exercise 09c: the informer of what a controller has made, and the way from there to the key.
package watchthecopy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client kubernetes.Interface, namespace string, enqueue func(original string)) error

// patience is for events that come within milliseconds, and after a gap within two seconds.
const patience = 3 * time.Second

// Check disturbs the copies, and waits until the keys that the reader's code enqueues have corrected them.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("an original is enqueued when it is created and when it changes", func(b *check.B) {
		c := start(b, work.Entry)
		c.create("a")
		c.setOriginal("a", "two")
		c.corrected("a", "the original a was changed")
	})
	ok = ok && t.Behaviour("a copy that is deleted comes back", func(b *check.B) {
		c := start(b, work.Entry)
		c.create("a")
		c.remove("a")
		c.corrected("a", "the copy of a was deleted")
	})
	if !ok {
		return
	}
	if t.Behaviour("only the original of that copy is enqueued, and no request is sent for it", onlyThatOne(work.Entry)) {
		// It is chance whether a resync comes in this one.
		t.Behaviour("of the owners of a copy only the controller is enqueued", onlyTheController(work.Entry))
	}
	t.Behaviour("a copy that is changed is corrected", func(b *check.B) {
		c := start(b, work.Entry)
		c.create("a")
		c.known("a")
	})
	loses := func(b *check.B, what string, change func(copied *corev1.ConfigMap)) {
		c := start(b, work.Entry)
		c.create("a")
		c.known("a")
		c.settled()
		c.change("removes the "+what+" of", "a", change)
		c.corrected("a", "the "+what+" of the copy of a was removed")
	}
	t.Behaviour("a copy that has lost its owner reference, or its label, gets it back", func(b *check.B) {
		loses(b, "owner reference", func(copied *corev1.ConfigMap) { copied.OwnerReferences = nil })
		loses(b, "label", func(copied *corev1.ConfigMap) { copied.Labels = nil })
	})
	t.Behaviour("a copy that was deleted while no watch was open comes back", func(b *check.B) {
		c := start(b, work.Entry)
		c.create("a")
		c.known("a")
		c.settled()
		c.wire.Gap(true, func() { c.remove("a") })
		c.corrected("a", "the copy of a was deleted in a gap")
	})
}

// startWithThree creates three originals. The copy of c is deleted: when it is back, the creation of all three has been reported.
func startWithThree(b *check.B, entry Entry) *controller {
	c := start(b, entry)
	for _, name := range []string{"a", "b", "c"} {
		c.create(name)
	}
	c.remove("c")
	c.corrected("c", "the copy of c was deleted")
	return c
}

// onlyThatOne deletes the copy of b three times. A resync that enqueues b has by the third time enqueued a too, because it enqueues
// all originals, one after the other.
func onlyThatOne(entry Entry) func(b *check.B) {
	return func(b *check.B) {
		c := startWithThree(b, entry)
		keys, requests := len(c.keys()), len(c.wire.Requests())
		for range 3 {
			c.remove("b")
			c.corrected("b", "the copy of b was deleted")
		}
		if slices.Contains(c.keys()[keys:], "a") {
			b.Fatalf("the copy of b was deleted, and a was enqueued")
		}
		if n := len(c.wire.Requests()) - requests; n > 0 {
			b.Fatalf("the copy of b was deleted, and %d requests were sent: its deletion is an event of a watch", n)
		}
	}
}

// onlyTheController lets the copy of b have two owners.
func onlyTheController(entry Entry) func(b *check.B) {
	return func(b *check.B) {
		c := startWithThree(b, entry)
		keys := len(c.keys())
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: c.get("a").UID}
		c.change("adds the owner a, which is not the controller, to", "b", func(copied *corev1.ConfigMap) {
			copied.OwnerReferences = append(copied.OwnerReferences, owner)
		})
		c.remove("b")
		c.corrected("b", "the copy of b was deleted")
		if slices.Contains(c.keys()[keys:], "a") {
			b.Fatalf("the copy of b was changed and deleted, and a was enqueued, which is an owner of it but not its controller")
		}
	}
}

// controller is a queue with a reconciler, and the reader's function that adds keys.
type controller struct {
	b      *check.B
	wire   *kube.Wire
	client typedcorev1.ConfigMapInterface
	queue  *workqueue.Typed[string]
	ended  <-chan struct{}
	err    error
	// reconciled is how many reconciliations have ended.
	reconciled atomic.Int32

	mu       sync.Mutex
	enqueued []string
}

func start(b *check.B, entry Entry) *controller {
	namespace := kube.Namespace(b)
	c := &controller{
		b: b, wire: kube.NewWire(b), client: kube.Client(b).CoreV1().ConfigMaps(namespace), queue: workqueue.NewTyped[string](),
	}
	client := c.wire.Client()
	c.ended = b.Go(func() { c.err = entry(b.Context(), client, namespace, c.enqueue) })
	worker := b.Go(c.work)
	b.Cleanup(func() {
		c.queue.ShutDown()
		<-worker
	})
	return c
}

func (c *controller) enqueue(key string) {
	c.b.Event("  enqueued: %s", key)
	c.mu.Lock()
	c.enqueued = append(c.enqueued, key)
	c.mu.Unlock()
	c.queue.Add(key)
}

func (c *controller) keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.enqueued)
}

func (c *controller) create(name string) {
	c.b.Event("the check creates the original %s", name)
	_, err := c.client.Create(c.b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"loud": "yes"}}, Data: map[string]string{"word": "one"},
	}, metav1.CreateOptions{})
	if err != nil {
		c.b.Fatalf("creating a ConfigMap: %v", err)
	}
	c.corrected(name, fmt.Sprintf("the original %s was created", name))
}

func (c *controller) setOriginal(name, word string) {
	c.b.Event("the check sets the word of the original %s to %s", name, word)
	object := c.get(name)
	object.Data["word"] = word
	if _, err := c.client.Update(c.b.Context(), object, metav1.UpdateOptions{}); err != nil {
		c.b.Fatalf("changing a ConfigMap: %v", err)
	}
}

func (c *controller) get(name string) *corev1.ConfigMap {
	object, err := c.client.Get(c.b.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.b.Fatalf("reading a ConfigMap: %v", err)
	}
	return object
}

// remove deletes the copy of an original.
func (c *controller) remove(name string) {
	c.b.Event("another user deletes the copy of %s", name)
	if err := c.client.Delete(c.b.Context(), copyOf(c.get(name)), metav1.DeleteOptions{}); err != nil {
		c.b.Fatalf("deleting a copy: %v", err)
	}
}

// change lets another user change the copy of an original.
func (c *controller) change(what, name string, change func(copied *corev1.ConfigMap)) {
	c.b.Event("another user %s the copy of %s", what, name)
	copied := c.get(copyOf(c.get(name)))
	change(copied)
	if _, err := c.client.Update(c.b.Context(), copied, metav1.UpdateOptions{}); err != nil {
		c.b.Fatalf("changing a copy: %v", err)
	}
}

// known changes a copy and waits until that is corrected: then its informer has it.
func (c *controller) known(name string) {
	c.change("changes the word of", name, func(copied *corev1.ConfigMap) { copied.Data["word"] = "quiet" })
	c.corrected(name, fmt.Sprintf("the copy of %s was changed", name))
}

// settled waits until all events of copies so far have led to reconciliations, by one that comes after them. So what comes next is
// not corrected by chance because of an earlier event.
func (c *controller) settled() {
	c.create("marker")
	c.remove("marker")
	c.corrected("marker", "the copy of marker was deleted")
}

// corrected waits until the copy is what it should be.
func (c *controller) corrected(name, disturbance string) {
	asked := -1
	c.b.Eventually(patience, func() string {
		// Nothing but a reconciliation corrects a copy: the API server is asked again only after one.
		if done := int(c.reconciled.Load()); done != asked {
			asked = done
			if c.isCorrect(name) {
				return ""
			}
		}
		select {
		case <-c.ended:
			if c.err != nil {
				c.b.Fatalf("Watch returned an error: %v", c.err)
			}
		default:
		}
		if slices.ContainsFunc(c.keys(), func(key string) bool { return strings.HasPrefix(key, prefix) }) {
			return "the name of a copy was enqueued, and not the name of its original"
		}
		return fmt.Sprintf("%s, and %s was not enqueued after that", disturbance, name)
	})
}
