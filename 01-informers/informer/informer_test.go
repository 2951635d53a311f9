package main

import (
	"context"
	"errors"
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

// section returns the lines of one numbered step of the program, without its heading.
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
	}), "four changes, two runs of the worker")
	g.Expect(section(out, "4")).To(ContainElements("backoff failed pear", "waiting returned pear"))
	relist := section(out, "5")
	g.Expect(relist).To(ContainElements("watch failed: the resourceVersion is too old", "list started",
		"store delete pear (a tombstone: the watch missed the deletion)", "handler update apple"))
	g.Expect(relist).NotTo(ContainElement("watch DELETED pear"))
	g.Expect(section(out, "6")).To(Equal([]string{"add apple"}))
	g.Expect(section(out, "7")).To(Equal([]string{
		"its store: apple", "made by hand: apple", "the same resourceVersions: true",
	}))
}

// calls records the notifications of a handler by the name of the object.
type calls struct {
	mu     sync.Mutex
	byName map[string][]string
}

func (c *calls) record(name, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName == nil {
		c.byName = map[string][]string{}
	}
	c.byName[name] = append(c.byName[name], what)
}

func (c *calls) of(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.byName[name])
}

// handler returns a handler for either informer that records its notifications.
func handler[T cache.Object](c *calls) cache.TypedResourceEventHandler[T] {
	return cache.TypedResourceEventHandlerDetailedFuncs[T]{
		AddFunc: func(added T, isInInitialList bool) {
			if isInInitialList {
				c.record(added.GetName(), "initial")
				return
			}
			c.record(added.GetName(), "add")
		},
		UpdateFunc: func(_, updated T) { c.record(updated.GetName(), "update") },
		DeleteFunc: func(deleted cache.DeletedObject[T]) {
			if deleted.FinalStateUnknown != nil {
				c.record(deleted.GetName(), "tombstone")
				return
			}
			c.record(deleted.GetName(), "delete")
		},
	}
}

// The input is a list, changes, an interrupted watch with changes that it misses and a 410, more changes, and a
// handler that is added later.
func TestTheSameInputHasTheSameResultAsWithSharedIndexInformer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &session{Env: testserver.LessonEnv(t)}
	do := func(err error) {
		t.Helper()
		g.Expect(err).NotTo(HaveOccurred())
	}
	do(s.create(ctx, "apple"))
	do(s.create(ctx, "pear"))

	listerWatcher, err := s.listerWatcher()
	do(err)
	assembled := handmade.New(handmade.Options{ListerWatcher: listerWatcher})
	untyped, err := sharedInformer(s)
	do(err)
	shared := cache.NewTypedSharedIndexInformer[*corev1.ConfigMap](untyped)
	var first, firstShared, late, lateShared calls
	assembled.AddHandler(handler[object](&first))
	_, err = shared.AddTypedEventHandler(handler[*corev1.ConfigMap](&firstShared))
	do(err)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { assembled.Run(ctx) })
	running.Go(func() { shared.RunWithContext(ctx) })
	g.Expect(cache.WaitFor(ctx, "", assembled.HasSyncedChecker(), shared.HasSyncedChecker())).To(BeTrue())

	expectSame := func() {
		t.Helper()
		g.Eventually(func(g Gomega) {
			list, err := s.ConfigMaps().List(ctx, metav1.ListOptions{LabelSelector: lesson.Label})
			g.Expect(err).NotTo(HaveOccurred())
			onServer := []string{}
			for _, configMap := range list.Items {
				onServer = append(onServer, handmade.ItemOf(&configMap))
			}
			slices.Sort(onServer)
			g.Expect(states(assembled.Store())).To(Equal(onServer))
			g.Expect(states(shared.GetStore())).To(Equal(onServer))
		}, soon).Should(Succeed())
	}
	expectSame()
	do(s.update(ctx, "apple"))
	do(s.create(ctx, "plum"))
	do(s.DeleteConfigMap(ctx, "plum"))
	expectSame()
	do(s.interrupt(ctx, func() error {
		return errors.Join(s.DeleteConfigMap(ctx, "pear"), s.update(ctx, "apple"), s.update(ctx, "apple"), s.create(ctx, "fig"))
	}))
	expectSame()
	do(s.update(ctx, "fig"))
	expectSame()
	assembled.AddHandler(handler[object](&late))
	_, err = shared.AddTypedEventHandler(handler[*corev1.ConfigMap](&lateShared))
	do(err)
	do(s.update(ctx, "apple"))
	expectSame()

	for name, want := range map[string][]string{
		"apple": {"initial", "update", "update", "update"}, // The relist is one update for two changes.
		"pear":  {"initial", "tombstone"},
		"plum":  {"add", "delete"},
		"fig":   {"add", "update"},
	} {
		g.Eventually(func() []string { return first.of(name) }, soon).Should(Equal(want), "made by hand: %s", name)
		g.Eventually(func() []string { return firstShared.of(name) }, soon).Should(Equal(want), "shared: %s", name)
	}
	for name, want := range map[string][]string{"apple": {"initial", "update"}, "fig": {"initial"}, "pear": nil} {
		g.Eventually(func() []string { return late.of(name) }, soon).Should(Equal(want), "made by hand, added later: %s", name)
		g.Eventually(func() []string { return lateShared.of(name) }, soon).Should(Equal(want), "shared, added later: %s", name)
	}
}
