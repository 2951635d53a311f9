package controller

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
)

// withoutLabels removes the labels of a DaemonSet, like a user while the operator is down.
func (f *goopTestEnv) withoutLabels(name string) {
	daemonSet := f.daemonSets()[name]
	daemonSet.Labels = nil
	f.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
	f.use()
}

// A DaemonSet without labels still belongs to the Goop: its work ends when it has to.
func TestDaemonSetWithoutLabelsEnds(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for reason, end := range map[string]func(*goopTestEnv){
				"deadline":  func(f *goopTestEnv) { f.clock.Step(time.Hour) },
				"suspended": func(f *goopTestEnv) { f.change(suspended) },
				"deleted":   func(f *goopTestEnv) { f.delete() },
			} {
				t.Run(reason, func(t *testing.T) {
					t.Parallel()
					f := newGoopTestEnv(t, "a", "b")
					f.create(spec, deadline(60), cleanup)
					f.runs("a/0", "b/0")
					f.withoutLabels("job-0")
					end(f)
					f.settle()
					f.Expect(f.places()).NotTo(ContainElement(HaveSuffix("/0")))
				})
			}
		})
	}
}

// The cleanup also finds its DaemonSet without labels.
func TestCleanupWithoutLabels(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.delete()
	f.withoutLabels("job-cleanup")
	f.ends(0, "", "a/cleanup")
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}))
	f.ends(0, "", "b/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.daemonSets()).To(BeEmpty())
}

// strippingLabels replaces the reconciler by one for whose DaemonSets an admission policy removes the labels.
func (f *goopTestEnv) strippingLabels() {
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, ok := obj.(*appsv1.DaemonSet); !ok {
				return c.Patch(ctx, obj, patch, opts...)
			}
			body, err := patch.Data(obj)
			f.Expect(err).NotTo(HaveOccurred())
			var change map[string]any
			f.Expect(json.Unmarshal(body, &change)).To(Succeed())
			delete(change["metadata"].(map[string]any), "labels")
			body, err = json.Marshal(change)
			f.Expect(err).NotTo(HaveOccurred())
			return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), opts...)
		},
	})
}

// works runs the controllers for a while.
func (f *goopTestEnv) works() {
	for range 8 {
		f.reconciles(1)
		f.simulateDaemonSets()
		f.clock.Step(2 * writeInterval)
	}
}

// A policy that removes the labels on every write affects neither the work nor the status.
func TestLabelsThatAreRemovedEachTime(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(2), deadline(3600))
	f.withoutLabels("job-0")
	f.strippingLabels()
	f.kubelet("a/0", isRunning)
	f.kubelet("b/0", isRunning)
	f.works()
	f.expectCounts(2, 2, 0, 0)
	result, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(result.RequeueAfter).To(BeNumerically(">", 0), "it waits for the deadline")
	f.kubelet("a/0", hasFinished(0, ""))
	f.deleteNode("b")
	f.works()
	f.Expect(f.places()).To(Equal([]string{"a/0", "a/1"}))
	f.clock.Step(time.Hour)
	f.works()
	f.expect(v1alpha1.ConditionFailed, "True", v1alpha1.ReasonDeadlineExceeded)
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
}

// A ConfigMap has the name of a shard, and the Goop as its owner, but not the label by which it would be found. The
// operator has no permission to patch it. The shard lists no node, so it is created again.
func TestShardWithoutLabels(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(suspended)
	shard := desiredShard(f.goop(), record.Shard{})
	shard.Labels = nil
	f.Expect(f.client.Create(f.ctx, shard)).To(Succeed())
	f.change(resumed)
	f.settle()
	f.expectRunning(v1alpha1.ReasonWorking)
	f.Expect(f.requests.writes).NotTo(HaveKey("PATCH configmaps/job-record-0"))
	var created corev1.ConfigMap
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(shard), &created)).To(Succeed())
	f.Expect(created.UID).NotTo(Equal(shard.UID))
	f.Expect(created.Labels).To(HaveKey(v1alpha1.LabelGoop))
}

// The cache indexes a DaemonSet without labels, and keeps the affinity of one that has lost its owner.
func TestCacheKnowsDaemonSetsByLabelOrOwner(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	round := plan.Round{Nodes: []string{"a", "b"}}
	unlabelled, orphan := desiredRound(aGoop(), round, testImages), desiredRound(aGoop(), round, testImages)
	unlabelled.Labels, orphan.OwnerReferences = nil, nil
	for _, daemonSet := range []*appsv1.DaemonSet{unlabelled, orphan} {
		reduced := reducedTo[*appsv1.DaemonSet](g, daemonSet)
		g.Expect(indexDependent(reduced)).To(ContainElement("job"))
		g.Expect(roundOf(0, reduced)).To(Equal(round))
	}
}

// A policy removes the label of the record, and a user the finalizer of the Goop: the record goes with the Goop, which nothing
// but its owner names.
func TestRecordWithoutLabelsIsReleased(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	shard := f.shards()[0]
	shard.Labels = nil
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.settle()
	f.expectRunning(v1alpha1.ReasonWorking)
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.setFinalizers()
	// The garbage collector deletes what it owned.
	f.Expect(f.client.Delete(f.ctx, &shard)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-0"])).To(Succeed())
	f.settle()
	f.Expect(apierrors.IsNotFound(f.client.Get(f.ctx, client.ObjectKeyFromObject(&shard), &corev1.ConfigMap{}))).To(BeTrue())
}
