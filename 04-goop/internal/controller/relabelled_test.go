package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// relabel does what a policy does that sets the label managed-by on all objects of a namespace.
func (f *goopTestEnv) relabel(object client.Object) {
	object.GetLabels()[labelManagedBy] = "others"
	f.Expect(f.client.Update(f.ctx, object)).To(Succeed())
}

// Neither the DaemonSet controller nor the cache selects pods by the label managed-by.
func TestRelabelledPodsAreInTheCache(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	pod := podOf(desiredRound(aGoop(), plan.Round{Everywhere: true}, testImages), "a")
	delete(pod.Labels, labelManagedBy)
	for object, options := range CacheOptions().ByObject {
		if _, isPod := object.(*corev1.Pod); isPod {
			g.Expect(options.Label.Matches(labels.Set(pod.Labels))).To(BeTrue())
			g.Expect(options.Label.Matches(labels.Set{labelManagedBy: managedBy})).To(BeFalse(), "no pods of other Goops")
		}
	}
}

// A pod of the work that the cache does not have yet is found, even with another managed-by label.
func TestRelabelledPodKeepsTheCleanupWaiting(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	f.relabel(f.pod("a/0"))
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.blind(&corev1.Pod{})
	for range 10 {
		_, _ = f.reconcile()
		f.observeDaemonSets(f.daemonSets())
	}
	f.Expect(f.daemonSets()).To(BeEmpty(), "neither the work nor the cleanup")
}

// A DaemonSet that was orphaned is ended, whatever its managed-by label.
func TestRelabelledDaemonSetEnds(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	goop := f.goop()
	goop.Finalizers = append(goop.Finalizers, metav1.FinalizerOrphanDependents)
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, goop)).To(Succeed())
	daemonSet := f.daemonSets()["job-0"]
	daemonSet.OwnerReferences = nil
	f.relabel(daemonSet)
	f.clock.SetTime(time.Now())
	f.settle()
	f.Expect(f.daemonSets()).To(BeEmpty())
}

// A shard without an owner and with another managed-by label keeps its meaning.
func TestRelabelledRecordSaysTheSame(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.ends(0, "", "a/0")
	shard := f.shards()[0]
	shard.OwnerReferences, shard.Annotations = nil, map[string]string{"others": "annotation"}
	f.relabel(&shard)
	f.settle()
	f.runs("b/0")
	f.ends(0, "", "b/0")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	f.expectCounts(2, 0, 2, 0)
	shard = f.shards()[0]
	f.Expect(shard.Annotations).To(HaveKey("others"))
	f.Expect(shard.Finalizers).To(ContainElement(v1alpha1.CleanupFinalizer))
}
