package main

import (
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/testserver"
)

// filled returns an indexer with these Pods.
func filled(g Gomega, pods ...*corev1.Pod) cache.Indexer {
	indexer, err := newIndexer(pods...)
	g.Expect(err).NotTo(HaveOccurred())
	return indexer
}

// keys returns the keys that a lookup returns.
func keys(g Gomega, indexer cache.Indexer, index, value string) []string {
	keys, err := indexer.IndexKeys(index, value)
	g.Expect(err).NotTo(HaveOccurred())
	return keys
}

// The durations differ, and so the test does not compare the whole output.
func TestProgram(t *testing.T) {
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred())
	for _, line := range []string{
		`*v1.Node     key "node-1"     namespace ""      name "node-1"`,
		"uid-web      shop/web-0 shop/web-1",
		"without an index:  100 found, 10000 examined",
		"with an index:     100 found, 100 examined: 100 times fewer",
		"Update   2",
		"Update with an object that has an owner panics: true",
		"then deleted:                      app=web  a nil, on which a type assertion panics",
	} {
		g.Expect(out).To(ContainSubstring(line))
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		namespace, name string
		key             string
	}{
		"namespaced":     {"shop", "web-0", "shop/web-0"},
		"cluster-scoped": {"", "node-1", "node-1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			obj := pod(test.namespace, test.name)
			g.Expect(cache.MetaNamespaceKeyFunc(obj)).To(Equal(test.key))
			g.Expect(cache.ObjectToName(obj)).To(Equal(cache.ObjectName{Namespace: test.namespace, Name: test.name}))
			g.Expect(cache.ParseObjectName(test.key)).To(Equal(cache.NewObjectName(test.namespace, test.name)))
			g.Expect(cache.NewObjectName(test.namespace, test.name).String()).To(Equal(test.key))
			g.Expect(cache.MetaNamespaceKeyFunc(cache.ExplicitKey(test.key))).To(Equal(test.key))
		})
	}
	g := NewWithT(t)
	g.Expect(types.NamespacedName{Name: "node-1"}.String()).To(Equal("/node-1"), "not the key of a store")
	_, err := cache.ParseObjectName("a/b/c")
	g.Expect(err).To(MatchError(ContainSubstring(`unexpected key format: "a/b/c"`)))
	_, err = cache.MetaNamespaceKeyFunc("a string")
	g.Expect(err).To(HaveOccurred())
}

// A delete handler can get a tombstone, which has a key and may have no object.
func TestOnlyTheDeletionHandlingKeyFuncAcceptsATombstone(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tombstone := cache.DeletedFinalStateUnknown{Key: "shop/web-0"}
	_, err := cache.MetaNamespaceKeyFunc(tombstone)
	g.Expect(err).To(HaveOccurred())
	g.Expect(cache.DeletionHandlingMetaNamespaceKeyFunc(tombstone)).To(Equal("shop/web-0"))
	g.Expect(cache.DeletionHandlingObjectToName(tombstone)).To(Equal(cache.NewObjectName("shop", "web-0")))
}

func TestAnIndexFollowsTheObject(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer := filled(g, pod("shop", "web-0", onNode("node-1")))
	g.Expect(keys(g, indexer, byNode, "node-1")).To(Equal([]string{"shop/web-0"}))

	g.Expect(indexer.Update(pod("shop", "web-0", onNode("node-2")))).To(Succeed())
	g.Expect(keys(g, indexer, byNode, "node-1")).To(BeEmpty())
	g.Expect(keys(g, indexer, byNode, "node-2")).To(Equal([]string{"shop/web-0"}))

	g.Expect(indexer.Delete(pod("shop", "web-0"))).To(Succeed(), "Delete needs the key only, not the values")
	g.Expect(keys(g, indexer, byNode, "node-2")).To(BeEmpty())
	g.Expect(indexer.ListIndexFuncValues(byNode)).To(BeEmpty(), "a value without objects is removed")
}

func TestAnObjectCanHaveSeveralValuesOrNone(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer := filled(g, shop()...)
	g.Expect(keys(g, indexer, byOwner, "uid-db")).To(Equal([]string{"shop/db-0"}))
	g.Expect(keys(g, indexer, byOwner, "uid-backup")).To(Equal([]string{"shop/db-0"}))
	g.Expect(keys(g, indexer, byNode, "")).To(BeEmpty(), "a Pod that is not scheduled has no value")
	g.Expect(indexer.ListIndexFuncValues(byNode)).To(ConsistOf("node-1", "node-2"))
	g.Expect(indexer.ListIndexFuncValues("no-such-index")).To(BeEmpty(), "an unknown name is not an error here")
}

func TestIndexReturnsTheObjectsThatShareAValue(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	db := shop()[2]
	indexer := filled(g, append(shop(), pod("shop", "backup-0", ownedBy("uid-backup")))...)
	siblings, err := indexer.Index(byOwner, db)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(siblings).To(ConsistOf(
		HaveField("Name", "db-0"), HaveField("Name", "backup-0"),
	), "each once, although db-0 shares two values with itself")

	g.Expect(indexer.Index(byOwner, pod("", "", ownedBy("uid-web")))).To(HaveLen(2), "the object need not be in the store")
}

func TestAnIndexThatDoesNotExistIsAnError(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, err := filled(g).ByIndex("by-image", "none")
	g.Expect(err).To(MatchError("Index with name by-image does not exist"))
	_, err = filled(g).Index("by-image", pod("", ""))
	g.Expect(err).To(MatchError("Index with name by-image does not exist"))
}

func TestAnIndexCanBeAddedLater(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer := filled(g, shop()...)
	byName := cache.Indexers{"by-name": cache.TypedIndexerFuncToIndexerFunc(func(pod *corev1.Pod) ([]string, error) {
		return []string{pod.Name}, nil
	})}
	g.Expect(indexer.AddIndexers(byName)).To(Succeed())
	g.Expect(keys(g, indexer, "by-name", "web-0")).To(Equal([]string{"shop/web-0", "test/web-0"}), "existing objects are indexed")
	g.Expect(indexer.AddIndexers(byName)).To(MatchError(ContainSubstring("indexer conflict")), "a name is unique")
}

// GetTypedIndexer of an informer returns the same lookups without type assertions.
func TestTypedIndexer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	informer := cache.NewTypedSharedIndexInformer[*corev1.Pod](cache.NewSharedIndexInformerWithOptions(
		&cache.ListWatch{}, &corev1.Pod{}, cache.SharedIndexInformerOptions{Indexers: cache.Indexers{}}))
	g.Expect(informer.AddTypedIndexers(indexers())).To(Succeed())
	indexer := informer.GetTypedIndexer()
	g.Expect(indexer.Add(shop()[0])).To(Succeed())
	pods, err := indexer.ByTypedIndex(byNode, "node-1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods[0].Spec.NodeName).To(Equal("node-1"))
	pods, err = indexer.TypedIndex(byApp, shop()[1])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods[0].Name).To(Equal("web-0"))
}

// Generated informers have the namespace index, so that this does not happen to them.
func TestAddIndexersPanicsForAnInformerWithoutIndexers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	informer := cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, &corev1.Pod{}, cache.SharedIndexInformerOptions{})
	g.Expect(func() { _ = informer.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}) }).
		To(PanicWith(MatchError("assignment to entry in nil map")))
}

func TestReplaceRebuildsTheIndexes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer := filled(g, shop()...)
	g.Expect(indexer.Replace([]any{pod("shop", "web-7", onNode("node-9"))}, "70")).To(Succeed())
	g.Expect(indexer.ListIndexFuncValues(byNode)).To(Equal([]string{"node-9"}))
	g.Expect(indexer.ListIndexFuncValues(cache.NamespaceIndex)).To(Equal([]string{"shop"}))
}

// The queue's Bookmark and ReplacedAll deltas set it when no object changes.
func TestTheStoreHasTheLatestResourceVersion(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer := filled(g)
	g.Expect(indexer.LastStoreSyncResourceVersion()).To(BeEmpty())
	g.Expect(indexer.Replace(nil, "70")).To(Succeed())
	g.Expect(indexer.LastStoreSyncResourceVersion()).To(Equal("70"))
	g.Expect(indexer.Add(pod("shop", "web-0", func(pod *corev1.Pod) { pod.ResourceVersion = "71" }))).To(Succeed())
	g.Expect(indexer.LastStoreSyncResourceVersion()).To(Equal("71"))
	indexer.Bookmark("90")
	g.Expect(indexer.LastStoreSyncResourceVersion()).To(Equal("90"))
}

// A data race is found only with -race.
func TestTheStoreIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer := filled(g, shop()...)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 500 {
				name := fmt.Sprintf("pod-%d-%d", worker, i%10)
				_ = indexer.Add(pod("shop", name, onNode(fmt.Sprintf("node-%d", i%3))))
				_, _ = indexer.ByIndex(byNode, "node-1")
				_ = indexer.List()
				if i%7 == 0 {
					_ = indexer.Delete(pod("shop", name))
				}
			}
		})
	}
	wg.Wait()
	for _, node := range indexer.ListIndexFuncValues(byNode) {
		objects, err := indexer.ByIndex(byNode, node)
		g.Expect(err).NotTo(HaveOccurred())
		for _, obj := range objects {
			g.Expect(obj.(*corev1.Pod).Spec.NodeName).To(Equal(node))
		}
	}
}
