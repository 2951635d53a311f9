// Package level is exercise 09b: a controller that takes events as hints to look.
package level

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client kubernetes.Interface, namespace string, events <-chan watch.Event) error

// patience is also for requests that fail some times, with a pause after each.
const patience = 10 * time.Second

// Check compares the copies with the originals, after events that were not faithful.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a labelled ConfigMap gets a loud copy", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		c.expect("a-loud=ONE")
	})
	ok = ok && t.Behaviour("the copy follows a change, and is deleted with the original", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		c.added(c.create("b", "two"))
		c.modified(c.set("three"))
		c.deleted(c.remove("b"))
		c.expect("a-loud=THREE")
	})
	if !ok {
		return
	}
	t.Behaviour("without the label there is no copy", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		c.modified(c.unlabel("a"))
		c.expect()
	})
	t.Behaviour("a label with another value counts as none", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		c.modified(c.label("a", "no"))
		c.expect()
	})
	t.Behaviour("the copy is no original: it does not have the label", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		c.expect("a-loud=ONE")
		loud := c.must(c.client.Get(b.Context(), "a-loud", metav1.GetOptions{}))
		if loud.Labels["loud"] == "yes" {
			b.Fatalf("a-loud has the label loud=yes: it is an original too, so there has to be an a-loud-loud, and so on")
		}
	})
	t.Behaviour("an event that was lost is made good by the next one", func(b *check.B) {
		c := start(b, work.Entry)
		c.lost(c.create("a", "one"))
		c.modified(c.set("two"))
		c.expect("a-loud=TWO")
	})
	t.Behaviour("an event that comes twice, or late, changes nothing", func(b *check.B) {
		c := start(b, work.Entry)
		old := c.create("a", "one")
		c.added(old)
		c.modified(c.set("two"))
		c.added(old)
		c.modified(old)
		c.expect("a-loud=TWO")
	})
	t.Behaviour("a deletion that is reported late does not delete the copy of a new object", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		old := c.remove("a")
		c.added(c.create("a", "two"))
		c.deleted(old)
		c.expect("a-loud=TWO")
	})
	t.Behaviour("a new list brings everything into order that is there", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		c.lost(c.set("two"))
		c.added(c.create("b", "three"))
		c.lost(c.unlabel("b"))
		c.lost(c.create("c", "four"))
		c.relist()
		c.expect("a-loud=TWO", "c-loud=FOUR")
	})
	t.Behaviour("a write that fails is repeated", func(b *check.B) {
		c := start(b, work.Entry)
		c.wire.Fail(2, kube.Writes)
		c.added(c.create("a", "one"))
		c.expect("a-loud=ONE")
	})
	t.Behaviour("a deletion that fails is repeated", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		c.copied()
		c.wire.Fail(2, kube.Deletes)
		c.deleted(c.remove("a"))
		c.expect()
	})
	t.Behaviour("a read that fails is repeated", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		c.copied()
		c.wire.Fail(2, reads)
		c.modified(c.set("two"))
		c.expect("a-loud=TWO")
	})
	t.Behaviour("so is one of the copy", func(b *check.B) {
		c := start(b, work.Entry)
		c.added(c.create("a", "one"))
		c.copied()
		c.wire.Fail(2, func(r kube.Request) bool { return reads(r) && r.Name == "a-loud" })
		c.modified(c.set("two"))
		c.expect("a-loud=TWO")
	})
	t.Behaviour("it does not give up after some attempts", func(b *check.B) {
		c := start(b, work.Entry)
		c.wire.Fail(6, kube.Writes)
		c.added(c.create("a", "one"))
		c.expect("a-loud=ONE")
	})
}

// reads are requests for what the API server has.
func reads(r kube.Request) bool { return r.Verb == "get" || r.Verb == "list" }

// controller is the reader's function at work, with a channel of events that the check sends.
type controller struct {
	b      *check.B
	wire   *kube.Wire
	client typedcorev1.ConfigMapInterface
	events chan watch.Event
	ended  <-chan struct{}
	err    error
}

func start(b *check.B, entry Entry) *controller {
	namespace := kube.Namespace(b)
	c := &controller{
		b: b, wire: kube.NewWire(b), client: kube.Client(b).CoreV1().ConfigMaps(namespace),
		events: make(chan watch.Event, 100),
	}
	client := c.wire.Client()
	c.ended = b.Go(func() { c.err = entry(b.Context(), client, namespace, c.events) })
	return c
}

func (c *controller) create(name, word string) *corev1.ConfigMap {
	c.b.Event("the check creates %s with the word %s", name, word)
	return c.must(c.client.Create(c.b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"loud": "yes"}},
		Data:       map[string]string{"word": word},
	}, metav1.CreateOptions{}))
}

func (c *controller) set(word string) *corev1.ConfigMap {
	c.b.Event("the check sets the word of a to %s", word)
	object := c.must(c.client.Get(c.b.Context(), "a", metav1.GetOptions{}))
	object.Data["word"] = word
	return c.must(c.client.Update(c.b.Context(), object, metav1.UpdateOptions{}))
}

func (c *controller) unlabel(name string) *corev1.ConfigMap {
	c.b.Event("the check removes the label of %s", name)
	object := c.must(c.client.Get(c.b.Context(), name, metav1.GetOptions{}))
	object.Labels = nil
	return c.must(c.client.Update(c.b.Context(), object, metav1.UpdateOptions{}))
}

func (c *controller) label(name, value string) *corev1.ConfigMap {
	c.b.Event("the check sets the label of %s to loud=%s", name, value)
	object := c.must(c.client.Get(c.b.Context(), name, metav1.GetOptions{}))
	object.Labels = map[string]string{"loud": value}
	return c.must(c.client.Update(c.b.Context(), object, metav1.UpdateOptions{}))
}

func (c *controller) remove(name string) *corev1.ConfigMap {
	c.b.Event("the check deletes %s", name)
	object := c.must(c.client.Get(c.b.Context(), name, metav1.GetOptions{}))
	if err := c.client.Delete(c.b.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.b.Fatalf("deleting a ConfigMap: %v", err)
	}
	return object
}

func (c *controller) must(object *corev1.ConfigMap, err error) *corev1.ConfigMap {
	if err != nil {
		c.b.Fatalf("a request of the check: %v", err)
	}
	return object
}

func (c *controller) added(object *corev1.ConfigMap)    { c.send(watch.Added, object) }
func (c *controller) modified(object *corev1.ConfigMap) { c.send(watch.Modified, object) }
func (c *controller) deleted(object *corev1.ConfigMap)  { c.send(watch.Deleted, object) }

// lost is a change whose event does not come.
func (c *controller) lost(*corev1.ConfigMap) { c.b.Event("  its event is lost") }

func (c *controller) send(event watch.EventType, object *corev1.ConfigMap) {
	c.b.Event("  event %s %s with the word %s", event, object.Name, object.Data["word"])
	c.events <- watch.Event{Type: event, Object: object.DeepCopy()}
}

// relist sends what a new list has: an event for each original that is there.
func (c *controller) relist() {
	c.settle()
	list, err := c.client.List(c.b.Context(), metav1.ListOptions{})
	if err != nil {
		c.b.Fatalf("listing: %v", err)
	}
	for i := range list.Items {
		if !strings.HasSuffix(list.Items[i].Name, "-loud") {
			c.added(&list.Items[i])
		}
	}
}

// settle waits until all events have been taken.
func (c *controller) settle() {
	c.b.Eventually(patience, func() string {
		select {
		case <-c.ended:
			c.b.Fatalf("Loud returned before the channel was closed, with the error: %v", c.err)
		default:
		}
		if len(c.events) > 0 {
			return "Loud does not take the events"
		}
		return ""
	})
}

// copied waits until a has a copy.
func (c *controller) copied() {
	c.b.Eventually(patience, func() string {
		if _, err := c.client.Get(c.b.Context(), "a-loud", metav1.GetOptions{}); err != nil {
			return "a has no copy"
		}
		return ""
	})
}

// expect closes the channel, waits for the reader's function, and compares the copies.
func (c *controller) expect(want ...string) {
	close(c.events)
	c.b.Eventually(patience, func() string {
		select {
		case <-c.ended:
			return ""
		default:
			return "the channel is closed, and Loud does not return"
		}
	})
	if c.err != nil {
		c.b.Fatalf("Loud returned an error: %v", c.err)
	}
	list, err := c.client.List(c.b.Context(), metav1.ListOptions{})
	if err != nil {
		c.b.Fatalf("listing: %v", err)
	}
	var got []string
	for _, item := range list.Items {
		if strings.HasSuffix(item.Name, "-loud") {
			got = append(got, fmt.Sprintf("%s=%s", item.Name, item.Data["word"]))
		}
	}
	if text := strings.Join(got, ", "); text != strings.Join(want, ", ") {
		c.b.Fatalf("the copies are [%s], and should be [%s]", text, strings.Join(want, ", "))
	}
}
