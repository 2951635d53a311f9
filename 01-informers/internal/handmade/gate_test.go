package handmade

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
)

// step steps once and returns the item that moved: "stage name", or "stage" for a list, or "".
func (b *bench) step(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	moved, ok := b.gate.Step(ctx)
	if ctx.Err() != nil {
		t.Fatalf("the step did not return: %+v", b.gate.traffic)
	}
	if !ok {
		return ""
	}
	if moved.Key.Name == "" {
		return string(moved.Stage)
	}
	return string(moved.Stage) + " " + moved.Key.Name
}

func (b *bench) steps(t *testing.T, count int) []string {
	t.Helper()
	var moved []string
	for range count {
		moved = append(moved, b.step(t))
	}
	return moved
}

func TestStepsFromTheStart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	b := start(t, setting{paused: true, names: []string{"apple"}})
	g.Eventually(b.gate.Held, soon).Should(HaveLen(1))
	g.Expect(b.all()).To(BeEmpty(), "not even the list was requested")
	g.Expect(b.steps(t, 5)).To(Equal([]string{"list", "queue", "store", "handler apple", "waiting apple"}))
	g.Eventually(b.HasSyncedChecker().Done(), soon).Should(BeClosed())
	g.Eventually(b.gate.Held, soon).Should(HaveLen(1), "the workers have begun")
	g.Expect(b.steps(t, 3)).To(Equal([]string{"working apple", "done apple", ""}))
}

func TestStepsMoveOneItemAfterTheOther(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	b := start(t, setting{names: []string{"apple", "pear"}})
	g.Eventually(func() []string { return b.of("pear") }, soon).Should(ContainElement("done/done"))
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(ContainElement("done/done"))
	b.gate.Pause()
	b.forget()
	b.change(t, "apple", "red")
	b.change(t, "pear", "green")
	g.Eventually(b.gate.Held, soon).Should(HaveLen(1))

	path := func(name string) []string {
		return []string{"watch " + name, "queue " + name, "store " + name, "handler " + name, "waiting " + name, "working " + name, "done " + name}
	}
	g.Expect(b.steps(t, 7)).To(Equal(path("apple")))
	g.Eventually(b.gate.Held, soon).Should(HaveLen(1))
	g.Expect(b.of("pear")).To(BeEmpty())
	g.Expect(b.steps(t, 7)).To(Equal(path("pear")))
	g.Expect(b.step(t)).To(BeEmpty())
}

func TestPauseStopsEveryPart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	working := make(chan struct{})
	b := start(t, setting{names: []string{"apple", "pear"}, work: func(_ context.Context, key cache.ObjectName) error {
		if key.Name == "slow" {
			<-working
		}
		return nil
	}})
	b.create(t, "slow")
	g.Eventually(func() []string { return b.of("slow") }, soon).Should(ContainElement("working/started"))
	b.gate.Pause()
	close(working)
	for range 20 {
		b.change(t, "apple", time.Now().String())
	}
	g.Eventually(func() int { return len(b.gate.Held()) }, soon).Should(Equal(2), "the watch, and the worker whose work is done")
	b.forget()
	g.Consistently(func() []Event { return b.all() }, "200ms").Should(BeEmpty())
	g.Expect(b.gate.Held()[0].Stage).To(Equal(StageDone), "the item closest to the end of its path is the next")
	g.Expect(b.gate.Held()[1].Stage).To(Equal(StageWatch), "one event waits, and the others are not read")

	b.gate.Resume()
	g.Eventually(func() []string { return b.of("slow") }, soon).Should(Equal([]string{"done/done"}))
	g.Eventually(func() []string { return b.of("apple") }, soon).Should(ContainElement("done/done"))
	g.Expect(b.gate.Held()).To(BeEmpty())
}

func TestStopOpensTheGate(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	b := start(t, setting{names: []string{"apple"}})
	b.gate.Pause()
	b.change(t, "apple", "red")
	g.Eventually(b.gate.Held, soon).Should(HaveLen(1))
	b.stop()
	g.Eventually(b.stopped, soon).Should(BeClosed())
	b.gate.Pause()
	g.Expect(b.gate.Paused()).To(BeFalse(), "it stays open: no step would follow")
}
