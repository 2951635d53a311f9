package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// othersFinalizer is the finalizer of another controller, which keeps a deleted Goop for any time.
const othersFinalizer = "example.com/others"

// setFinalizers writes the finalizers of the Goop as a user.
func (f *goopTestEnv) setFinalizers(names ...string) {
	goop := f.goop()
	goop.Finalizers = names
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
}

// A finalizer of another controller keeps a Goop that is being deleted. Its work ends nevertheless, and does not start
// again.
func TestWorkEndsThoughAnotherFinalizerKeepsTheGoop(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(3))
	f.ends(0, "", "a/0")
	f.runs("a/1", "b/0")
	f.setFinalizers(othersFinalizer)
	f.delete()
	f.Expect(f.gone()).To(BeFalse())
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.Expect(f.places()).To(BeEmpty())
	f.expectNotRunning(v1alpha1.ReasonDeleting)
	f.expectCounts(3, 0, 1, 0)
	f.expectSteadyState()
}

// A failed deletion is reported and retried.
func TestWorkThatCannotBeEndedIsReported(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create()
	f.runs("a/0")
	f.setFinalizers(othersFinalizer)
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			return apierrors.NewForbidden(appsv1.Resource("daemonsets"), object.GetName(), errors.New("a policy keeps DaemonSets"))
		},
	})
	f.delete()
	running := f.expectRunning(v1alpha1.ReasonApplyFailed)
	f.Expect(running.Message).To(And(HavePrefix("the work cannot be terminated"), ContainSubstring("a policy keeps DaemonSets")))
	_, err := f.reconcile()
	f.Expect(err).To(HaveOccurred(), "it is retried")
	f.use()
	f.settle()
	f.expectNotRunning(v1alpha1.ReasonDeleting)
	f.Expect(f.daemonSets()).To(BeEmpty())
}

// The operator leaves foreground deletion and orphaning to the garbage collector.
func TestDeletionIsLeftToTheGarbageCollector(t *testing.T) {
	t.Parallel()
	for _, finalizer := range []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents} {
		t.Run(finalizer, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.create()
			f.runs("a/0")
			f.setFinalizers(othersFinalizer, finalizer)
			f.delete()
			f.Expect(f.daemonSets()).To(HaveKey("job-0"))
			f.orphan("job-0")
			f.setFinalizers(othersFinalizer)
			f.settle()
			f.Expect(f.daemonSets()).To(HaveKey("job-0"), "the Goop no longer owns it")
		})
	}
}

// orphan removes the owner of a DaemonSet, like the garbage collector.
func (f *goopTestEnv) orphan(name string) {
	daemonSet := f.daemonSets()[name]
	daemonSet.OwnerReferences = nil
	f.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
}

// The DaemonSet of the cleanup is deleted before the finalizer is removed. Otherwise, while a finalizer of another
// controller keeps the Goop, a pod that is evicted would be created again, and the cleanup would run again.
func TestCleanupEndsBeforeTheFinalizerGoes(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	f.setFinalizers(v1alpha1.CleanupFinalizer, othersFinalizer)
	f.delete()
	f.kubelet("a/cleanup", hasFinished(0, ""))
	for hasFinalizer(f.goop()) {
		f.reconciles(1)
		f.clock.Step(2 * writeInterval)
	}
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.settle()
	f.Expect(f.goop().Finalizers).To(Equal([]string{othersFinalizer}))
	f.Expect(f.recorded()).To(ContainElement(HavePrefix("Normal CleanedUp")))
	f.expectSteadyState()
	f.Expect(f.pods).To(HaveKeyWithValue("a/cleanup", 1))
}

// A user deletes the Goop again, with --cascade=orphan, while the cleanup runs. The garbage collector orphans the
// DaemonSet of the cleanup. The cleanup runs to its end, and the DaemonSet is deleted.
func TestCleanupIsOrphaned(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.delete()
	f.runs("a/cleanup")
	f.orphan("job-cleanup")
	f.ends(0, "", "a/cleanup")
	f.expectNotRunning(v1alpha1.ReasonCleaningUp)
	f.ends(0, "", "b/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.Expect(f.recorded()).To(ContainElement("Normal CleanedUp cleanupCmd exited with 0 on all nodes where work ran: 2"))
}

// The finalizer comes from a manifest that was copied from a Goop with a cleanupCmd. It does not keep the Goop.
func TestFinalizerWithoutACleanup(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create()
	f.runs("a/0")
	f.setFinalizers(v1alpha1.CleanupFinalizer)
	f.delete()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.pods).NotTo(HaveKey("a/cleanup"))
	f.Expect(f.recorded()).NotTo(ContainElement(ContainSubstring("Clean")))
}

// `kubectl replace` with a manifest without finalizers, while no work is to run. The finalizer is added again, so that
// the Goop cannot be deleted without its cleanup.
func TestFinalizerIsAddedAgain(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*goopTestEnv){
		"suspended": func(f *goopTestEnv) { f.change(suspended) },
		"ended":     func(f *goopTestEnv) { f.ends(0, "", "a/0") },
		"its record is lost": func(f *goopTestEnv) {
			f.removeShard(&f.shards()[0])
			f.settle()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.create(cleanup)
			f.runs("a/0")
			stop(f)
			f.setFinalizers()
			f.settle()
			f.delete()
			f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
			f.ends(0, "", "a/cleanup")
			f.Expect(f.gone()).To(BeTrue())
		})
	}
}

// The manifest also suspends the Goop, and no worker has reported yet that it has begun. The finalizer comes first.
func TestFinalizerIsAddedAgainToASuspendedGoop(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.begin(cleanup)
	goop := f.goop()
	goop.Spec.Suspend, goop.Finalizers = true, nil
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.reconciles(1)
	f.Expect(f.goop().Finalizers).To(Equal([]string{v1alpha1.CleanupFinalizer}))
}

// No work has begun, so no finalizer is needed.
func TestNoFinalizerBeforeTheWork(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup, suspended)
	f.Expect(f.goop().Finalizers).To(BeEmpty())
	f.expectSteadyState()
}

// After the TTL a finalizer of another controller keeps a shard. The operator does not delete it again and again.
func TestShardThatIsKeptAfterTheTTL(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(ttl(60))
	f.ends(0, "", "a/0")
	shard := f.shards()[0]
	shard.Finalizers = append(shard.Finalizers, othersFinalizer)
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.clock.Step(time.Hour)
	f.settle()
	f.Expect(f.shards()).To(HaveLen(1))
	f.expectSteadyState()
}
