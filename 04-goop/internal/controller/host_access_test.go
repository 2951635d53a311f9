package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// Host access is for operators that were started with it. One that no longer is ends what it has begun.
func TestHostAccess(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]v1alpha1.HostAccess{
		"root": {Root: v1alpha1.HostRootReadOnly}, "pid": {PID: true}, "network": {Network: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, "a")
			f.create(func(s *v1alpha1.GoopSpec) { s.Host = &host })
			f.Expect(f.expectNotRunning(v1alpha1.ReasonHostAccessRefused).Message).To(ContainSubstring("--allow-host-access"))
			f.Expect(f.daemonSets()).To(BeEmpty())
			f.Expect(f.shards()).To(BeEmpty())
			f.expectRest()
			f.reconciler.allowHostAccess = true
			f.settle()
			f.expectRunning(v1alpha1.ReasonWorking)
			f.Expect(f.places()).To(Equal([]string{"a/0"}))
			f.runs("a/0")
			f.reconciler.allowHostAccess = false
			f.settle()
			f.Expect(f.places()).To(BeEmpty())
			f.expectNotRunning(v1alpha1.ReasonHostAccessRefused)
		})
	}
	f := newField(t, "a")
	f.create(func(s *v1alpha1.GoopSpec) { s.Host = &v1alpha1.HostAccess{Root: v1alpha1.HostRootNone} })
	f.expectRunning(v1alpha1.ReasonWorking)
}

func withHost(s *v1alpha1.GoopSpec) {
	s.Host = &v1alpha1.HostAccess{Root: v1alpha1.HostRootReadWrite, PID: true, Network: true}
}

// The cleanup has no more access to nodes than the work: not where a user made the record, with all that a record of
// the operator's has, and not where the operator was restarted without the flag while the Goop was alive.
func TestHostAccessOfTheCleanup(t *testing.T) {
	t.Parallel()
	t.Run("a user makes the record", func(t *testing.T) {
		t.Parallel()
		f := newField(t, "a")
		f.create(cleanup, withHost)
		goop := f.goop()
		goop.Finalizers = []string{v1alpha1.CleanupFinalizer}
		f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
		f.Expect(f.client.Create(f.ctx, desiredShard(goop, record.Shard{Text: "s 2026-01-01T00:00:00Z\nb " + f.node("a") + "\n"}))).To(Succeed())
		f.settle()
		f.recorded()
		f.delete()
		f.Expect(f.places()).To(BeEmpty())
		f.Expect(f.daemonSets()).To(BeEmpty())
	})
	t.Run("the flag is withdrawn while it runs", func(t *testing.T) {
		t.Parallel()
		f := newField(t, "a", "b")
		f.reconciler.allowHostAccess = true
		f.create(cleanup, withHost)
		f.runs("a/0", "b/0")
		f.ends(0, "", "a/0")
		f.recorded()
		f.reconciler.allowHostAccess = false
		f.settle()
		f.Expect(f.places()).To(BeEmpty(), "a pod that is kept for its log would be made again if it is evicted")
		f.recorded()
		f.delete()
		f.Expect(f.places()).To(BeEmpty())
		f.Expect(f.daemonSets()).NotTo(HaveKey("job-cleanup"))
		f.Expect(f.gone()).To(BeFalse(), "the flag may come back")
		f.clock.Step(300 * time.Second)
		f.settle()
		f.Expect(f.gone()).To(BeTrue())
		f.Expect(f.recorded()).To(ContainElement(And(HavePrefix("Warning CleanupIncomplete"), ContainSubstring("--allow-host-access"))))
	})
	t.Run("the flag is withdrawn during the cleanup", func(t *testing.T) {
		t.Parallel()
		f := newField(t, "a")
		f.reconciler.allowHostAccess = true
		f.create(cleanup, withHost)
		f.runs("a/0")
		f.delete()
		f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
		f.reconciler.allowHostAccess = false
		f.settle()
		f.Expect(f.places()).To(BeEmpty())
		f.reconciler.allowHostAccess = true
		f.settle()
		f.ends(0, "", "a/cleanup")
		f.Expect(f.gone()).To(BeTrue())
	})
}
