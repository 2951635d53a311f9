// Package scribble is exercise 07b: a controller that leaves the objects of its cache unchanged.
package scribble

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listerscorev1 "k8s.io/client-go/listers/core/v1"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, lister listerscorev1.ConfigMapNamespaceLister, client typedcorev1.ConfigMapInterface,
	name string) error

const (
	patience = 5 * time.Second
	name     = "a"
)

// labels are those of another writer. Each behaviour has its own.
func labels() map[string]string { return map[string]string{"app": "web"} }

// Check compares the cache and the API server after calls of Reconcile.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("the label is written, and other labels stay", func(b *check.B) {
		c := start(b, work.Entry, labels())
		c.reconcile()
		c.expect(map[string]string{"app": "web", "keys": "2"})
	})
	t.Behaviour("an object that has no labels is unchanged in the cache", func(b *check.B) {
		c := start(b, work.Entry, nil)
		c.expectUnchanged(c.reconcile)
		c.expect(map[string]string{"keys": "2"})
	})
	t.Behaviour("an object that has labels is unchanged in the cache", func(b *check.B) {
		c := start(b, work.Entry, labels())
		c.expectUnchanged(c.reconcile)
	})
	if !ok {
		return
	}
	t.Behaviour("the label follows the number of keys", func(b *check.B) {
		c := start(b, work.Entry, labels())
		c.reconcile()
		c.set(map[string]string{"one": "1"})
		c.reconcile()
		c.expect(map[string]string{"app": "web", "keys": "1"})
	})
	t.Behaviour("a write that failed is repeated", func(b *check.B) {
		c := start(b, work.Entry, labels())
		c.wire.Fail(1, kube.Writes)
		if err := c.try(name); err == nil {
			b.Fatalf("the write failed, and Reconcile returned no error")
		}
		c.reconcile()
		c.expect(map[string]string{"app": "web", "keys": "2"})
	})
	t.Behaviour("if another writer comes first, the label is written, and what the other one has written stays", func(b *check.B) {
		c := start(b, work.Entry, labels())
		c.changeMeanwhile(2)
		if err := c.try(name); err != nil {
			b.Event("  it returned the error: %v", err)
			c.wire.Before(nil)
			c.waitForCache()
			c.reconcile()
		}
		if one := c.get().Data["one"]; !strings.HasPrefix(one, "another") {
			b.Fatalf("another writer has changed the data, and its change is lost")
		}
		c.expect(map[string]string{"app": "api", "keys": "2"})
	})
	t.Behaviour("if the label is right, no request is sent", func(b *check.B) {
		c := start(b, work.Entry, map[string]string{"keys": "2"})
		c.reconcile()
		if requests := c.wire.Requests(); len(requests) > 0 {
			b.Fatalf("this request was sent: %s", requests[0])
		}
	})
	t.Behaviour("an object that is gone is no error", func(b *check.B) {
		c := start(b, work.Entry, labels())
		if err := c.try("other"); err != nil {
			b.Fatalf("the lister does not have the object, and Reconcile returned the error: %v", err)
		}
	})
}

// controller is the reader's function with the cache that it reads, and a ConfigMap of two keys.
type controller struct {
	b         *check.B
	entry     Entry
	namespace string
	// wire is between the function and the API server. The cache and the check do not use it.
	wire   *kube.Wire
	client typedcorev1.ConfigMapInterface
	lister listerscorev1.ConfigMapNamespaceLister
}

func start(b *check.B, entry Entry, labels map[string]string) *controller {
	c := &controller{b: b, entry: entry, namespace: kube.Namespace(b), wire: kube.NewWire(b)}
	client := kube.Client(b)
	c.client = client.CoreV1().ConfigMaps(c.namespace)
	_, err := c.client.Create(b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"one": "1", "two": "2"},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a ConfigMap: %v", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(c.namespace))
	c.lister = factory.Core().V1().ConfigMaps().Lister().ConfigMaps(c.namespace)
	factory.StartWithContext(b.Context())
	b.Cleanup(factory.Shutdown)
	c.waitForCache()
	return c
}

func (c *controller) try(name string) error {
	c.b.Event("Reconcile")
	return c.entry(c.b.Context(), c.lister, c.wire.Client().CoreV1().ConfigMaps(c.namespace), name)
}

func (c *controller) reconcile() {
	if err := c.try(name); err != nil {
		c.b.Fatalf("Reconcile returned an error: %v", err)
	}
}

// expectUnchanged compares the object that is in the cache before the call, which the call may not change. An event of the
// watch changes no object: it puts another one into the cache.
func (c *controller) expectUnchanged(call func()) {
	cached, err := c.lister.Get(name)
	if err != nil {
		c.b.Fatalf("reading from the cache: %v", err)
	}
	before := cached.DeepCopy()
	call()
	if !apiequality.Semantic.DeepEqual(before, cached) {
		c.b.Fatalf("the object of the cache was changed: its labels were %v and are %v", before.Labels, cached.Labels)
	}
}

func (c *controller) get() *corev1.ConfigMap {
	object, err := c.client.Get(c.b.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.b.Fatalf("reading the ConfigMap: %v", err)
	}
	return object
}

// set changes the data, and waits until the cache has it.
func (c *controller) set(data map[string]string) {
	c.b.Event("the check changes the data, which has %d keys now", len(data))
	object := c.get()
	object.Data = data
	if _, err := c.client.Update(c.b.Context(), object, metav1.UpdateOptions{}); err != nil {
		c.b.Fatalf("changing the ConfigMap: %v", err)
	}
	c.waitForCache()
}

// changeMeanwhile lets another writer change the data and the label app just before each of the next n writes of Reconcile arrives.
func (c *controller) changeMeanwhile(n int) {
	c.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if n == 0 || !kube.Writes(request) {
			return nil, nil
		}
		n--
		c.b.Event("  another writer changes the data, and sets the label app to api")
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"app":"api"}},"data":{"one":"another %d"}}`, n)
		if _, err := c.client.Patch(c.b.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			c.b.Errorf("changing the ConfigMap: %v", err)
		}
		return nil, nil
	})
}

// waitForCache waits until the cache has what the API server has now.
func (c *controller) waitForCache() {
	version := c.get().ResourceVersion
	c.b.Eventually(patience, func() string {
		if cached, err := c.lister.Get(name); err != nil || cached.ResourceVersion != version {
			return "the cache does not have what the API server has"
		}
		return ""
	})
}

// expect compares the labels on the API server.
func (c *controller) expect(want map[string]string) {
	if got := c.get().Labels; !maps.Equal(got, want) {
		c.b.Fatalf("on the API server the labels are %v, and should be %v", got, want)
	}
}
