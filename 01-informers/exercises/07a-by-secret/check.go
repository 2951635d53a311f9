// Package secret is exercise 07a: an index of Pods by the Secrets that they use.
package secret

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(informer cache.SharedIndexInformer) (find func(namespace, name string) ([]string, error), err error)

const patience = 5 * time.Second

// Check asks for the users of Secrets.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a Pod is found by the Secret of a volume", func(b *check.B) {
		p := newPods(b, work.Entry)
		p.create("a", volume("db"))
		p.create("b", volume("mail"))
		p.create("c", nothing)
		p.start()
		p.expect("db", "a")
		p.expect("mail", "b")
		p.expect("other")
	})
	if !ok {
		return
	}
	for _, place := range places {
		t.Behaviour("a Pod is found by the Secret of "+place.name, func(b *check.B) {
			p := newPods(b, work.Entry)
			p.create("a", func(spec *corev1.PodSpec) { place.use(spec, "db") })
			p.start()
			p.expect("db", "a")
			p.expect("mail")
		})
	}
	t.Behaviour("a Pod is found by each of its Secrets, and once", func(b *check.B) {
		p := newPods(b, work.Entry)
		p.create("a", volume("db"), volume("mail"), volume("db"))
		p.create("b", volume("db"))
		p.start()
		p.expect("db", "a", "b")
		p.expect("mail", "a")
	})
	t.Behaviour("a Secret of the same name in another namespace is another Secret", func(b *check.B) {
		p := newPods(b, work.Entry)
		p.create("a", volume("db"))
		p.createIn(kube.Namespace(b), "b", volume("db"))
		p.start()
		p.expect("db", "a")
	})
	t.Behaviour("Pods are found as they are now", func(b *check.B) {
		p := newPods(b, work.Entry)
		p.create("a", volume("db"))
		p.start()
		p.create("b", volume("db"))
		p.remove("a")
		p.seen("b")
		p.expect("db", "b")
	})
	t.Behaviour("a look-up neither goes through all Pods nor asks the API server", func(b *check.B) {
		p := newPods(b, work.Entry)
		p.create("a", volume("db"))
		for _, name := range []string{"b", "c", "d"} {
			p.create(name, volume("mail"))
		}
		p.start()
		requests, lists, indexed := len(p.wire.Requests("get", "list")), p.informer.lists.Load(), p.informer.indexed.Load()
		p.expect("db", "a")
		if len(p.wire.Requests("get", "list")) > requests {
			b.Fatalf("a look-up sent a request to the API server")
		}
		if p.informer.lists.Load() > lists {
			b.Fatalf("a look-up listed all Pods of the store")
		}
		if n := p.informer.indexed.Load() - indexed; n > 3 {
			b.Fatalf("one Pod of four uses the Secret, and a look-up took %d out of the index", n)
		}
	})
}

// pods are Pods with an informer for them, and the reader's function.
type pods struct {
	b         *check.B
	wire      *kube.Wire
	client    kubernetes.Interface
	namespace string
	factory   informers.SharedInformerFactory
	informer  *counted
	find      func(namespace, name string) ([]string, error)
}

func newPods(b *check.B, entry Entry) *pods {
	p := &pods{b: b, wire: kube.NewWire(b), client: kube.Client(b), namespace: kube.Namespace(b)}
	// The API server has the Pods of other checks too.
	p.factory = informers.NewSharedInformerFactoryWithOptions(p.wire.Client(), 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label + "=" + p.namespace }))
	p.informer = &counted{SharedIndexInformer: p.factory.Core().V1().Pods().Informer()}
	var err error
	if p.find, err = entry(p.informer); err != nil {
		b.Fatalf("BySecret returned an error: %v", err)
	}
	return p
}

// start fills the informer with the Pods that are there.
func (p *pods) start() {
	p.factory.StartWithContext(p.b.Context())
	p.b.Cleanup(p.factory.Shutdown)
	p.b.Eventually(patience, func() string {
		if !p.informer.HasSynced() {
			return "the informer has not synced"
		}
		return ""
	})
}

const label = "check"

func (p *pods) create(name string, spec ...func(*corev1.PodSpec)) {
	p.createIn(p.namespace, name, spec...)
}

func (p *pods) createIn(namespace, name string, spec ...func(*corev1.PodSpec)) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: p.namespace}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/none"}}},
	}
	for _, change := range spec {
		change(&pod.Spec)
	}
	if _, err := p.client.CoreV1().Pods(namespace).Create(p.b.Context(), pod, metav1.CreateOptions{}); err != nil {
		p.b.Fatalf("creating a Pod: %v", err)
	}
}

func (p *pods) remove(name string) {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := p.client.CoreV1().Pods(p.namespace).Delete(p.b.Context(), name, now); err != nil {
		p.b.Fatalf("deleting a Pod: %v", err)
	}
}

// seen waits until the store has these Pods.
func (p *pods) seen(names ...string) {
	store := p.informer.SharedIndexInformer.GetStore()
	p.b.Eventually(patience, func() string {
		if got := p.short(store.ListKeys()); got != strings.Join(names, ", ") {
			return "the store has the Pods " + got
		}
		return ""
	})
}

// expect compares the Pods that use a Secret.
func (p *pods) expect(secret string, want ...string) {
	got, err := p.find(p.namespace, secret)
	if err != nil {
		p.b.Fatalf("looking for the Pods that use %s: %v", secret, err)
	}
	p.b.Event("look-up of the Secret %s: %s", secret, p.short(got))
	if text := p.short(got); text != strings.Join(want, ", ") {
		p.b.Fatalf("the Secret %s is used by [%s], and the function found [%s]", secret, strings.Join(want, ", "), text)
	}
}

// short are the keys, sorted, without the namespace of the check.
func (p *pods) short(keys []string) string {
	var names []string
	for _, key := range keys {
		names = append(names, strings.TrimPrefix(key, p.namespace+"/"))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// counted counts how often all objects of the informer's store are listed, and how many come out of an index.
type counted struct {
	cache.SharedIndexInformer
	lists, indexed atomic.Int64
}

// GetStore is the informer's, with a count.
func (c *counted) GetStore() cache.Store { return c.GetIndexer() }

// GetIndexer is the informer's, with a count.
func (c *counted) GetIndexer() cache.Indexer {
	return &countedIndexer{c.SharedIndexInformer.GetIndexer(), c}
}

type countedIndexer struct {
	cache.Indexer
	informer *counted
}

// List is the indexer's.
func (c *countedIndexer) List() []any {
	c.informer.lists.Add(1)
	return c.Indexer.List()
}

// ListKeys is the indexer's.
func (c *countedIndexer) ListKeys() []string {
	c.informer.lists.Add(1)
	return c.Indexer.ListKeys()
}

// Index is the indexer's.
func (c *countedIndexer) Index(index string, object any) ([]any, error) {
	found, err := c.Indexer.Index(index, object)
	c.informer.indexed.Add(int64(len(found)))
	return found, err
}

// ByIndex is the indexer's.
func (c *countedIndexer) ByIndex(index, value string) ([]any, error) {
	found, err := c.Indexer.ByIndex(index, value)
	c.informer.indexed.Add(int64(len(found)))
	return found, err
}

// IndexKeys is the indexer's.
func (c *countedIndexer) IndexKeys(index, value string) ([]string, error) {
	found, err := c.Indexer.IndexKeys(index, value)
	c.informer.indexed.Add(int64(len(found)))
	return found, err
}
