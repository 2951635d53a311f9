package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	listerscorev1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

var byNamespace = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}

// The study journey times List with a selector, once with an index of the label and once without. The two
// cannot differ: ListAll and ListAllByNamespace never ask that index. Everything that can be counted is the same.
func TestSeedQuestion_AListerIgnoresLabelIndexes(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]func(cache.Indexer, labels.Selector) (int, error){
		"all namespaces": listAll, "one namespace": listNamespace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			without, err := ask("the same", list, byNamespace)
			g.Expect(err).NotTo(HaveOccurred())
			with, err := ask("the same", list, byNamespace, byLabel)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(with).To(Equal(without))
			g.Expect(with.byOwn).To(BeZero(), "the index of the label was never asked")
		})
	}

	g := NewWithT(t)
	indexed, err := ask("what the index is for", askIndex, byNamespace, byLabel)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(indexed).To(Equal(cost{question: "what the index is for", found: fleetSize / apps, byOwn: 1}), "one look-up, no labels compared")
}

func TestListComparesTheLabelsOfEveryObject(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	cost, err := ask("", listAll, byNamespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cost.compared).To(Equal(fleetSize))
	g.Expect(cost.scans).To(Equal(1))
}

func TestANamespaceListerUsesTheNamespaceIndex(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	cost, err := ask("", listNamespace, byNamespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cost.byNamespace).To(Equal(1))
	g.Expect(cost.scans).To(BeZero())
	g.Expect(cost.compared).To(Equal(fleetSize / namespaces))
}

// The informers of a factory have that index. One that you make yourself has it only if you say so; then
// List works all the same, with a warning in the log, by going through everything.
func TestWithoutTheNamespaceIndexANamespaceListerScans(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	cost, err := ask("", listNamespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cost.scans).To(Equal(1))
	g.Expect(cost.found).To(Equal(100), "what it finds is right")
}

func TestWhatListNeedNotCompare(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		selector     labels.Selector
		found, scans int
	}{
		"everything": {labels.Everything(), fleetSize, 1},
		"nothing":    {labels.Nothing(), 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			indexer, err := newFleet(byNamespace)
			g.Expect(err).NotTo(HaveOccurred())
			pods, err := listerscorev1.NewPodLister(indexer).List(test.selector)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(test.found))
			g.Expect(indexer.scans).To(Equal(test.scans))
		})
	}
}

// Get is one look-up in a map, whatever the number of objects.
func TestGetAsksForOneKey(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer, err := newFleet(byNamespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listerscorev1.NewPodLister(indexer).Pods("ns-7").Get("pod-7")).To(HaveField("Name", "pod-7"))
	g.Expect(indexer.keys).To(Equal(1))
	g.Expect([]int{indexer.scans, indexer.namespaceIndex, indexer.otherIndexes}).To(HaveEach(0))
}

// What one reader changes, all readers see. The next event of the server would not put it right, either:
// see the lesson indexer.
func TestAnObjectOfAListerIsSharedByAllReaders(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer, err := newFleet(byNamespace, byLabel)
	g.Expect(err).NotTo(HaveOccurred())
	lister := listerscorev1.NewPodLister(indexer).Pods("ns-0")
	get := func() *corev1.Pod {
		pod, err := lister.Get("pod-0")
		g.Expect(err).NotTo(HaveOccurred())
		return pod
	}
	get().DeepCopy().Labels["app"] = "changed"
	g.Expect(get().Labels).To(HaveKeyWithValue("app", "web"), "a copy is one's own")
	get().Labels["app"] = "changed"
	g.Expect(get().Labels).To(HaveKeyWithValue("app", "changed"))
	g.Expect(lister.List(labels.SelectorFromSet(labels.Set{"app": "changed"}))).To(HaveLen(1), "List believes it")
	g.Expect(indexer.IndexKeys(byApp, "changed")).To(BeEmpty(), "and the index does not know")
}
