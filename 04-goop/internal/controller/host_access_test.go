package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// Only an operator that was started with the flag permits host access. One without it ends work that an earlier one has
// begun.
func TestHostAccess(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]v1alpha1.HostAccess{
		"root": {Root: v1alpha1.HostRootReadOnly}, "pid": {PID: true}, "network": {Network: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.create(func(s *v1alpha1.GoopSpec) { s.Host = &host })
			f.Expect(f.expectNotRunning(v1alpha1.ReasonHostAccessNotAllowed).Message).To(ContainSubstring("--allow-host-access"))
			f.Expect(f.daemonSets()).To(BeEmpty())
			f.Expect(f.shards()).To(BeEmpty())
			f.expectSteadyState()
			f.reconciler.allowHostAccess = true
			f.settle()
			f.expectRunning(v1alpha1.ReasonWorking)
			f.Expect(f.places()).To(Equal([]string{"a/0"}))
			f.runs("a/0")
			f.reconciler.allowHostAccess = false
			f.settle()
			f.Expect(f.places()).To(BeEmpty())
			f.expectNotRunning(v1alpha1.ReasonHostAccessNotAllowed)
		})
	}
	f := newGoopTestEnv(t, "a")
	f.create(func(s *v1alpha1.GoopSpec) { s.Host = &v1alpha1.HostAccess{Root: v1alpha1.HostRootNone} })
	f.expectRunning(v1alpha1.ReasonWorking)
}

// The operator is restarted without the flag, and the record cannot be read or written. No pod keeps its access, and no
// node that joins gets a pod.
func TestHostAccessEndsWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*corev1.ConfigMap){
		"unreadable": func(shard *corev1.ConfigMap) { shard.Data[record.Key] += "?\n" },
		"immutable":  func(shard *corev1.ConfigMap) { shard.Immutable = new(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.reconciler.allowHostAccess = true
			f.create(cleanup, withHost)
			f.runs("a/0")
			shard := f.shards()[0]
			spoil(&shard)
			f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
			f.kubelet("a/0", hasFinished(0, ""))
			f.reconciler.allowHostAccess = false
			f.join("b")
			f.settle()
			f.Expect(f.places()).To(BeEmpty())
			f.clock.Step(time.Minute)
			f.settle()
			f.Expect(f.expectNotRunning(v1alpha1.ReasonHostAccessNotAllowed).Message).To(ContainSubstring("job-record-0"))
		})
	}
}

func withHost(s *v1alpha1.GoopSpec) {
	s.Host = &v1alpha1.HostAccess{Root: v1alpha1.HostRootReadWrite, PID: true, Network: true}
}

// The cleanup has no more host access than the work: not if a user creates a complete copy of a record, and not if the
// operator was restarted without the flag while the Goop existed.
func TestHostAccessOfTheCleanup(t *testing.T) {
	t.Parallel()
	t.Run("a user creates the record", func(t *testing.T) {
		t.Parallel()
		f := newGoopTestEnv(t, "a")
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
		f := newGoopTestEnv(t, "a", "b")
		f.reconciler.allowHostAccess = true
		f.create(cleanup, withHost)
		f.runs("a/0", "b/0")
		f.ends(0, "", "a/0")
		f.recorded()
		f.reconciler.allowHostAccess = false
		f.settle()
		f.Expect(f.places()).To(BeEmpty(), "a pod that is kept for its log would be created again if it is evicted")
		f.recorded()
		f.delete()
		f.Expect(f.places()).To(BeEmpty())
		f.Expect(f.daemonSets()).NotTo(HaveKey("job-cleanup"))
		f.Expect(f.gone()).To(BeFalse(), "the flag may be set again")
		f.clock.Step(300 * time.Second)
		f.settle()
		f.Expect(f.gone()).To(BeTrue())
		f.Expect(f.recorded()).To(ContainElement(And(HavePrefix("Warning CleanupIncomplete"), ContainSubstring("--allow-host-access"))))
	})
	t.Run("the flag is withdrawn during the cleanup", func(t *testing.T) {
		t.Parallel()
		f := newGoopTestEnv(t, "a")
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

// The flag is withdrawn, and the record of a Goop that is being deleted cannot be written: no pod keeps its access until the
// time for the cleanup is over.
func TestHostAccessEndsWithoutARecordOfADeletion(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.reconciler.allowHostAccess = true
	f.create(cleanup, withHost)
	f.runs("a/0")
	f.kubelet("b/0", isRunning)
	f.reconciler.allowHostAccess = false
	f.rejectingRecords()
	f.delete()
	f.Expect(f.places()).To(BeEmpty())
	f.clock.Step(2 * writeInterval)
	f.reconciles(1)
	f.Expect(f.goop().Finalizers).To(ContainElement(v1alpha1.CleanupFinalizer))
	f.expectNotRunning(v1alpha1.ReasonHostAccessNotAllowed)
}
