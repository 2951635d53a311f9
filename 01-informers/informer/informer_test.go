package main

import (
	"context"
	"fmt"
	"slices"
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

func TestProgram(t *testing.T) {
	t.Parallel()
	testserver.ExpectOutput(t, program)
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
	create := func(name string) { s.CreateConfigMap(ctx, name, "") }
	changes := 0
	change := func(name string) {
		changes++
		s.UpdateConfigMap(ctx, name, fmt.Sprint(changes))
	}
	create("apple")
	create("pear")

	assembled := handmade.New(handmade.Options{ListerWatcher: s.listerWatcher()})
	shared := cache.NewTypedSharedIndexInformer[*corev1.ConfigMap](sharedInformer(s))
	var first, firstShared, late, lateShared calls
	assembled.AddHandler(handler[object](&first))
	lesson.Must(shared.AddTypedEventHandler(handler[*corev1.ConfigMap](&firstShared)))
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
	change("apple")
	create("plum")
	s.DeleteConfigMap(ctx, "plum")
	expectSame()
	for _, link := range s.links {
		link.Cut()
	}
	s.DeleteConfigMap(ctx, "pear")
	change("apple")
	change("apple")
	create("fig")
	for _, link := range s.links {
		link.Restore()
	}
	expectSame()
	change("fig")
	expectSame()
	assembled.AddHandler(handler[object](&late))
	lesson.Must(shared.AddTypedEventHandler(handler[*corev1.ConfigMap](&lateShared)))
	change("apple")
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
