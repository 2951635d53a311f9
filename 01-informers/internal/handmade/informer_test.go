package handmade

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// way splits the stages of a test's expectation.
func way(stages string) []string { return strings.Fields(stages) }

func TestPlainInformerFollowsTheCluster(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]setting{
		"without a probe": {plain: true},
		"with a probe":    {},
		"without a streamed list": {
			listOnly: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var worked atomic.Int64
			s.names = []string{"apple", "pear"}
			s.work = func(context.Context, cache.ObjectName) error { worked.Add(1); return nil }
			b := start(t, s)
			g.Expect(b.stored()).To(Equal([]string{"apple=", "pear="}))
			g.Eventually(worked.Load, soon).Should(BeEquivalentTo(2))

			b.change(t, "apple", "red")
			b.create(t, "plum")
			b.remove(t, "pear")
			g.Eventually(b.stored, soon).Should(Equal([]string{"apple=red", "plum="}))
			g.Eventually(worked.Load, soon).Should(BeEquivalentTo(5))
			g.Expect(b.LastSyncResourceVersion()).NotTo(BeEmpty())
		})
	}
}

func TestRelistAfterALostWatchFindsWhatWasDeleted(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"without a probe": true, "with a probe": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			b := start(t, setting{plain: plain, names: []string{"apple", "pear"}})
			var gone sync.Map
			b.AddHandler(cache.TypedResourceEventHandlerFuncs[object]{DeleteFunc: func(deleted cache.DeletedObject[object]) {
				gone.Store(deleted.GetKey(), deleted)
			}})

			b.line.Cut()
			b.remove(t, "pear")
			b.create(t, "plum")
			b.change(t, "apple", "red")
			g.Expect(b.stored()).To(Equal([]string{"apple=", "pear="}), "nothing can have been seen")
			b.line.Mend()

			g.Eventually(b.stored, soon).Should(Equal([]string{"apple=red", "plum="}))
			g.Eventually(func() bool { _, ok := gone.Load(b.ns + "/pear"); return ok }, soon).Should(BeTrue())
			value, _ := gone.Load(b.ns + "/pear")
			deleted := value.(cache.DeletedObject[object])
			g.Expect(deleted.FinalStateUnknown).NotTo(BeNil(), "nobody saw the deletion")
			g.Expect(deleted.OptionalObj.GetName()).To(Equal("pear"), "the last state that the store knew")
		})
	}
}

func TestAnItemPassesEveryStage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	b := start(t, setting{names: []string{"apple"}})
	first := way("list/ADDED queue/ReplacedAll store/add handler/add waiting/added working/started done/done")
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(Equal(first))
	g.Expect(b.all()[0]).To(And(HaveField("Type", Started), HaveField("Streamed", true), HaveField("Initial", true)))

	b.forget()
	b.change(t, "apple", "red")
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(Equal(
		way("watch/MODIFIED queue/Updated store/update handler/update waiting/added working/started done/done")))
	items := map[string]bool{}
	for _, event := range b.all() {
		if event.Key.Name == "apple" {
			items[event.Item] = true
		}
	}
	g.Expect(items).To(HaveLen(1), "one change is one item, in all stages")

	b.forget()
	b.remove(t, "apple")
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(Equal(
		way("watch/DELETED queue/Deleted store/delete handler/delete waiting/added working/started done/done")))
}

func TestAListInOnePieceIsSeenToo(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	b := start(t, setting{names: []string{"apple"}, listOnly: true})
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(HaveLen(7))
	g.Expect(b.of("apple")[0]).To(Equal("list/LISTED"))
	g.Expect(b.all()[0].Streamed).To(BeFalse())
	parts := func() []string {
		var found []string
		for _, event := range b.all() {
			if event.Key.Name == "" {
				found = append(found, string(event.Stage)+"/"+event.Type)
			}
		}
		return found
	}
	// The reflector begins its watch on its own time: the list's items may have come right through before.
	g.Eventually(parts, soon).Should(ContainElements("list/started", "list/ended", "watch/started", "queue/ReplacedAll", "store/replace"))
}

func TestARelistIsSeen(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	b := start(t, setting{names: []string{"apple", "pear"}})
	g.Eventually(func() []string { return b.of("pear") }, soon).Should(HaveLen(7))
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(HaveLen(7))
	b.change(t, "apple", "red")
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(HaveLen(14))
	b.forget()
	b.line.Cut()
	b.remove(t, "pear")
	b.line.Mend()

	g.Eventually(func() []string { return b.of("pear") }, soon).Should(Equal(
		way("store/delete handler/delete waiting/added working/started done/done")),
		"no delta of its own: it is missing in the one that holds the list")
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(Equal(
		way("list/ADDED queue/ReplacedAll store/update handler/update waiting/added working/started done/done")),
		"nothing changed, and it is told all the same")
	for _, event := range b.all() {
		if event.Key.Name == "pear" && (event.Stage == StageStore || event.Stage == StageHandler) {
			g.Expect(event.Tombstone).To(BeTrue())
		}
		g.Expect(event.Initial).To(BeFalse())
	}
	var ended, failed bool
	for _, event := range b.all() {
		ended = ended || event.Stage == StageWatch && event.Type == Ended
		failed = failed || event.Err != nil && strings.Contains(event.Err.Error(), "too old")
	}
	g.Expect(ended).To(BeTrue())
	g.Expect(failed).To(BeTrue(), "the 410 is reported where it came in")
}

func TestAHandlerAddedLateIsToldOfEverything(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	b := start(t, setting{plain: true, names: []string{"apple", "pear"}})
	var mu sync.Mutex
	told := []string{}
	read := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(told) }
	tell := func(what string) { mu.Lock(); defer mu.Unlock(); told = append(told, what) }
	b.AddHandler(cache.TypedResourceEventHandlerDetailedFuncs[object]{
		AddFunc: func(added object, isInInitialList bool) {
			if isInInitialList {
				tell("initially " + added.GetName())
			} else {
				tell("add " + added.GetName())
			}
		},
		UpdateFunc: func(_, updated object) { tell("update " + updated.GetName()) },
	})
	g.Expect(read()).To(ConsistOf("initially apple", "initially pear"))
	b.create(t, "plum")
	b.change(t, "plum", "blue")
	g.Eventually(read, soon).Should(HaveLen(4))
	g.Expect(read()[2:]).To(Equal([]string{"add plum", "update plum"}))
}

func TestTransformComesBeforeTheStore(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	b := start(t, setting{names: []string{"apple"}, transform: func(obj any) (any, error) {
		if configMap, ok := obj.(*corev1.ConfigMap); ok {
			configMap.Data = nil
		}
		return obj, nil
	}})
	b.change(t, "apple", "red")
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(ContainElement("store/update"))
	g.Expect(b.stored()).To(Equal([]string{"apple="}))
}

func TestAnErrorInTheStreamIsSeen(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	fake := watch.NewFake()
	seen := &recorder{}
	stream := newStream(fake, &Probe{Observe: seen.observe})
	go stream.pump()
	go fake.Error(&corev1.ConfigMap{})
	g.Expect((<-stream.ResultChan()).Type).To(Equal(watch.Error))
	fake.Stop()
	g.Eventually(stream.ResultChan(), soon).Should(BeClosed())
	g.Expect(seen.all()).To(HaveLen(2))
	g.Expect(seen.all()[0].Err).To(HaveOccurred())
	g.Expect(seen.all()[1].Type).To(Equal(Ended))
}

func TestWorkThatFailsIsKeptBackAndComesAgain(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var tries atomic.Int64
	b := start(t, setting{names: []string{"apple"}, work: func(context.Context, cache.ObjectName) error {
		if tries.Add(1) < 3 {
			return errors.New("not yet")
		}
		return nil
	}})
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(ContainElement("done/done"))
	g.Expect(b.of("apple")[4:]).To(Equal(way(
		"waiting/added working/started backoff/failed waiting/returned working/started backoff/failed waiting/returned working/started done/done")))
	var attempts []int
	for _, event := range b.all() {
		if event.Stage == StageBackoff {
			attempts = append(attempts, event.Attempt)
			g.Expect(event.Err).To(MatchError("not yet"))
			g.Expect(event.Delay).To(BeNumerically(">", 0))
		}
	}
	g.Expect(attempts).To(Equal([]int{1, 2}))
}

func TestPlainWorkersTryAgain(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var tries atomic.Int64
	start(t, setting{plain: true, names: []string{"apple"}, work: func(context.Context, cache.ObjectName) error {
		if tries.Add(1) < 3 {
			return errors.New("not yet")
		}
		return nil
	}})
	g.Eventually(tries.Load, soon).Should(BeEquivalentTo(3))
}
