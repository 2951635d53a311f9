// Package tombstone is exercise 08b: handlers that keep something outside the cluster equal to it.
package tombstone

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(informer cache.SharedIndexInformer, put func(name string, uid types.UID), remove func(name string)) error

const (
	patience = 3 * time.Second
	// slowly is for how long a slow call waits to be overtaken.
	slowly = 300 * time.Millisecond
)

// Check compares the entries with the cluster, after changes that the informer sees and after some that it does not see.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("what is there, and what is created, is put", func(b *check.B) {
		o := start(b, work.Entry, "a")
		o.equal()
		o.create("b")
		o.equal()
	})
	ok = ok && t.Behaviour("what is deleted is removed", func(b *check.B) {
		o := start(b, work.Entry, "a", "b")
		o.equal()
		o.remove("b")
		o.equal()
	})
	if !ok {
		return
	}
	t.Behaviour("after a gap, an object that was replaced has its new uid", func(b *check.B) {
		o := start(b, work.Entry, "a", "b")
		o.equal()
		o.wire.Gap(true, func() { o.remove("a"); o.create("a") })
		o.equal()
	})
	t.Behaviour("put and remove of one object come one after the other, in its order", func(b *check.B) {
		o := start(b, work.Entry, "a")
		o.equal()
		o.slow.Store(true)
		o.remove("a")
		o.create("a")
		o.equal()
		before := o.calls()
		o.wire.Gap(true, func() { o.remove("a"); o.create("a") })
		b.Eventually(patience, func() string {
			if o.held.Load() || o.calls() > before {
				return ""
			}
			return "an object was replaced, and neither put nor remove is called"
		})
		o.remove("a")
		o.equal()
	})
	t.Behaviour("after a gap, an object that was created is put", func(b *check.B) {
		o := start(b, work.Entry, "a")
		o.equal()
		o.wire.Gap(true, func() { o.create("b") })
		o.equal()
	})
	t.Behaviour("after a gap, an object that was deleted is removed", func(b *check.B) {
		o := start(b, work.Entry, "a", "b")
		o.equal()
		o.wire.Gap(true, func() { o.remove("a") })
		o.equal()
	})
}

// outside is what lies outside the cluster, with the cluster.
type outside struct {
	b      *check.B
	wire   *kube.Wire
	client typedcorev1.ConfigMapInterface

	// slow says that calls are slow, and held that one waits.
	slow, held atomic.Bool

	mu      sync.Mutex
	entries map[string]types.UID
	ended   int
}

func start(b *check.B, entry Entry, names ...string) *outside {
	o := &outside{b: b, wire: kube.NewWire(b), entries: map[string]types.UID{}}
	namespace := kube.Namespace(b)
	o.client = kube.Client(b).CoreV1().ConfigMaps(namespace)
	for _, name := range names {
		o.create(name)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(o.wire.Client(), 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	if err := entry(informer, o.put, o.forget); err != nil {
		b.Fatalf("Keep returned an error: %v", err)
	}
	factory.StartWithContext(b.Context())
	b.Cleanup(factory.Shutdown)
	b.Eventually(patience, func() string {
		if informer.HasSynced() && o.wire.OpenWatches() > 0 {
			return ""
		}
		return "the informer has not synced"
	})
	return o
}

func (o *outside) put(name string, uid types.UID) {
	o.called("put "+name, func() { o.entries[name] = uid })
}

func (o *outside) forget(name string) {
	o.called("remove "+name, func() { delete(o.entries, name) })
}

// calls is how many have ended.
func (o *outside) calls() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended
}

// called is a call of put or remove. A slow one lets the next one overtake it, if there is one before it returns.
func (o *outside) called(what string, change func()) {
	if before := o.calls(); o.slow.Load() && o.held.CompareAndSwap(false, true) {
		for until := time.Now().Add(o.b.Patience(slowly)); o.calls() == before && time.Now().Before(until); {
			time.Sleep(time.Millisecond)
		}
		defer o.held.Store(false)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	o.ended++
	o.b.Event("  %s", what)
}

func (o *outside) create(name string) {
	o.b.Event("the check creates %s", name)
	_, err := o.client.Create(o.b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		o.b.Fatalf("creating a ConfigMap: %v", err)
	}
}

func (o *outside) remove(name string) {
	o.b.Event("the check deletes %s", name)
	if err := o.client.Delete(o.b.Context(), name, metav1.DeleteOptions{}); err != nil {
		o.b.Fatalf("deleting a ConfigMap: %v", err)
	}
}

// equal waits until the entries are those of the cluster.
func (o *outside) equal() {
	list, err := o.client.List(o.b.Context(), metav1.ListOptions{})
	if err != nil {
		o.b.Fatalf("listing ConfigMaps: %v", err)
	}
	want := map[string]types.UID{}
	for _, item := range list.Items {
		want[item.Name] = item.UID
	}
	o.b.Eventually(patience, func() string {
		o.mu.Lock()
		defer o.mu.Unlock()
		return difference(want, o.entries)
	})
}

func difference(want, got map[string]types.UID) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch uid, found := got[name]; {
		case !found:
			lines = append(lines, fmt.Sprintf("%s is in the cluster and has no entry", name))
		case uid != want[name]:
			lines = append(lines, fmt.Sprintf("the entry of %s has the uid of an object that is gone", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == "" {
			lines = append(lines, fmt.Sprintf("%s has an entry and is not in the cluster", name))
		}
	}
	return strings.Join(lines, "; ")
}
