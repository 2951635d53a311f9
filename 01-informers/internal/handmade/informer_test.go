package handmade

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// path splits the expected stages of an item.
func path(stages string) []string { return strings.Fields(stages) }

func TestInformerFollowsTheCluster(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]setting{
		"without a probe":          {plain: true},
		"with a probe":             {},
		"without a streaming list": {listOnly: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var worked atomic.Int64
			s.names = []string{"apple", "pear"}
			s.work = func(context.Context, cache.ObjectName) error {
				if worked.Add(1) == 1 {
					return errors.New("not yet")
				}
				return nil
			}
			b := start(t, s)
			g.Expect(b.stored()).To(Equal([]string{"apple=", "pear="}))
			g.Eventually(worked.Load, soon).Should(BeEquivalentTo(3), "one key is retried")

			b.change(t, "apple", "red")
			b.create(t, "plum")
			b.remove(t, "pear")
			g.Eventually(b.stored, soon).Should(Equal([]string{"apple=red", "plum="}))
			g.Eventually(worked.Load, soon).Should(BeEquivalentTo(6))
		})
	}
}

func TestStagesOfAListRequest(t *testing.T) {
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
	// The reflector starts its watch in its own goroutine: the items of the list may be done before.
	g.Eventually(parts, soon).Should(ContainElements("list/started", "list/ended", "watch/started", "queue/ReplacedAll", "store/replace"))
}

func TestStagesOfARelist(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	b := start(t, setting{names: []string{"apple", "pear"}})
	g.Expect(b.all()[0]).To(And(HaveField("Type", Started), HaveField("Streamed", true), HaveField("Initial", true)))
	g.Eventually(func() []string { return b.of("pear") }, soon).Should(HaveLen(7))
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(HaveLen(7))
	b.change(t, "apple", "red")
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(HaveLen(14))
	b.forget()
	b.link.Cut()
	b.remove(t, "pear")
	b.link.Restore()

	g.Eventually(func() []string { return b.of("pear") }, soon).Should(Equal(
		path("store/delete handler/delete waiting/added working/started done/done")),
		"it has no delta of its own: the delta with the list does not have it")
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(Equal(
		path("list/ADDED queue/ReplacedAll store/update handler/update waiting/added working/started done/done")),
		"nothing changed, and the handlers are called")
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
	g.Expect(failed).To(BeTrue(), "the stage that gets the 410 reports it")
}

func TestErrorInAWatchIsReported(t *testing.T) {
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

func TestFailedWorkIsRetriedAfterBackoff(t *testing.T) {
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
	g.Expect(b.of("apple")[4:]).To(Equal(path(
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
