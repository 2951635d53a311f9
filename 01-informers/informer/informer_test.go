package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

const soon = 20 * time.Second

var listOurs = metav1.ListOptions{LabelSelector: ours}

// section returns the lines of one numbered step of the program, without the step's own.
func section(out, number string) []string {
	_, after, _ := strings.Cut(out, number+". ")
	lines := []string{}
	for line := range strings.Lines(after) {
		if strings.HasPrefix(line, "   ") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		} else if len(lines) > 0 {
			break
		}
	}
	return lines
}

func TestProgram(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred())
	t.Log(out)
	g.Expect(section(out, "1")).To(Equal([]string{
		"list started", "list ADDED apple", "list ended, objects: 1", "watch started",
		"queue ReplacedAll, objects: 1", "queue ReplacedAll apple", "store replace, objects: 1", "store add apple",
		"handler add apple", "waiting added apple", "working started apple", "done apple",
	}))
	g.Expect(section(out, "2")).To(Equal([]string{
		"watch MODIFIED apple", "queue Updated apple", "store update apple", "handler update apple",
		"waiting added apple", "working started apple", "done apple",
	}))
	g.Expect(section(out, "3")).To(Equal([]string{
		"handler update apple", "waiting added apple", "working started apple",
		"handler update apple", "waiting dirty apple", "handler update apple", "waiting merged apple",
		"handler update apple", "waiting merged apple",
		"done apple", "waiting readded apple", "working started apple", "done apple",
	}), "four changes, two pieces of work")
	g.Expect(section(out, "4")).To(ContainElements("backoff failed pear", "waiting returned pear"))
	relist := section(out, "5")
	g.Expect(relist).To(ContainElements("watch failed: the resourceVersion is too old", "list started",
		"store delete pear (a tombstone: nobody saw it go)", "handler update apple"))
	g.Expect(relist).NotTo(ContainElement("watch DELETED pear"))
	g.Expect(section(out, "6")).To(Equal([]string{"add apple"}))
	g.Expect(section(out, "7")).To(Equal([]string{
		"its store: apple", "made by hand: apple", "the same versions: true",
	}))
}

// calls are what a handler was told, name by name.
type calls struct {
	mu   sync.Mutex
	told map[string][]string
}

func (c *calls) tell(name, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil {
		c.told = map[string][]string{}
	}
	c.told[name] = append(c.told[name], what)
}

func (c *calls) of(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told[name])
}

// handler writes down what it is told, for either informer.
func handler[T cache.Object](c *calls) cache.TypedResourceEventHandler[T] {
	return cache.TypedResourceEventHandlerDetailedFuncs[T]{
		AddFunc: func(added T, isInInitialList bool) {
			if isInInitialList {
				c.tell(added.GetName(), "initially")
				return
			}
			c.tell(added.GetName(), "add")
		},
		UpdateFunc: func(_, updated T) { c.tell(updated.GetName(), "update") },
		DeleteFunc: func(deleted cache.DeletedObject[T]) {
			if deleted.FinalStateUnknown != nil {
				c.tell(deleted.GetName(), "tombstone")
				return
			}
			c.tell(deleted.GetName(), "delete")
		},
	}
}

// TestSameStoryAsSharedIndexInformer tells one story to both: a list, changes, a lost watch with changes that
// nobody sees and a 410, changes again, and a handler that is added late.
func TestSameStoryAsSharedIndexInformer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newStory(&lesson.World{Client: testserver.Client(t), Namespace: testserver.Namespace(t)})
	do := func(err error) {
		t.Helper()
		g.Expect(err).NotTo(HaveOccurred())
	}
	do(s.create(ctx, "apple"))
	do(s.create(ctx, "pear"))

	byHand := handmade.New(handmade.Options{ListerWatcher: s.line().ListerWatcher()})
	shared := cache.NewTypedSharedIndexInformer[*corev1.ConfigMap](sharedInformer(s))
	var first, theirs, late, theirLate calls
	byHand.AddHandler(handler[object](&first))
	_, err := shared.AddTypedEventHandler(handler[*corev1.ConfigMap](&theirs))
	do(err)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { byHand.Run(ctx) })
	running.Go(func() { shared.RunWithContext(ctx) })
	g.Expect(cache.WaitFor(ctx, "", byHand.HasSyncedChecker(), shared.HasSyncedChecker())).To(BeTrue())

	same := func() {
		t.Helper()
		g.Eventually(func(g Gomega) {
			list, err := s.configMaps().List(ctx, listOurs)
			g.Expect(err).NotTo(HaveOccurred())
			there := []string{}
			for _, configMap := range list.Items {
				there = append(there, handmade.ItemOf(&configMap))
			}
			slices.Sort(there)
			g.Expect(versions(byHand.Store())).To(Equal(there))
			g.Expect(versions(shared.GetStore())).To(Equal(there))
		}, soon).Should(Succeed())
	}
	same()
	do(s.change(ctx, "apple"))
	do(s.create(ctx, "plum"))
	do(s.remove(ctx, "plum"))
	same()
	for _, line := range s.lines {
		line.Cut()
	}
	do(s.remove(ctx, "pear"))
	do(s.change(ctx, "apple"))
	do(s.change(ctx, "apple"))
	do(s.create(ctx, "fig"))
	for _, line := range s.lines {
		line.Mend()
	}
	same()
	do(s.change(ctx, "fig"))
	same()
	byHand.AddHandler(handler[object](&late))
	_, err = shared.AddTypedEventHandler(handler[*corev1.ConfigMap](&theirLate))
	do(err)
	do(s.change(ctx, "apple"))
	same()

	for name, want := range map[string][]string{
		"apple": {"initially", "update", "update", "update"}, // the relist is one update, for two changes
		"pear":  {"initially", "tombstone"},
		"plum":  {"add", "delete"},
		"fig":   {"add", "update"},
	} {
		g.Eventually(func() []string { return first.of(name) }, soon).Should(Equal(want), "made by hand: %s", name)
		g.Eventually(func() []string { return theirs.of(name) }, soon).Should(Equal(want), "shared: %s", name)
	}
	for name, want := range map[string][]string{"apple": {"initially", "update"}, "fig": {"initially"}, "pear": nil} {
		g.Eventually(func() []string { return late.of(name) }, soon).Should(Equal(want), "made by hand, late: %s", name)
		g.Eventually(func() []string { return theirLate.of(name) }, soon).Should(Equal(want), "shared, late: %s", name)
	}
}
