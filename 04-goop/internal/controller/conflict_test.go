package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
)

// A dependent of an earlier Goop is being deleted, and has a name that the Goop needs.
func TestNameConflictThatPasses(t *testing.T) {
	t.Parallel()
	for named, dependentOf := range map[string]func(*v1alpha1.Goop) client.Object{
		"DaemonSet job-0":        func(goop *v1alpha1.Goop) client.Object { return desiredRound(goop, plan.Round{}, testImages) },
		"ConfigMap job-record-0": func(goop *v1alpha1.Goop) client.Object { return desiredShard(goop, record.Shard{}) },
	} {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			notOwned := dependentOf(&v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace, UID: "other"}, Spec: f.spec()})
			notOwned.SetFinalizers([]string{othersFinalizer})
			f.Expect(f.client.Create(f.ctx, notOwned)).To(Succeed())
			f.Expect(f.client.Delete(f.ctx, notOwned)).To(Succeed())
			f.create()
			f.Expect(f.expectNotRunning(v1alpha1.ReasonNameConflict).Message).To(
				Equal(named + " is being deleted: another one is created when it no longer exists"))
			f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(notOwned), notOwned)).To(Succeed())
			notOwned.SetFinalizers(nil)
			f.Expect(f.client.Update(f.ctx, notOwned)).To(Succeed())
			f.settle()
			f.expectRunning(v1alpha1.ReasonWorking)
		})
	}
}

// An object that the Goop does not own has a name that the Goop needs. It is left unchanged, and all other dependents are
// created.
func TestNameConflict(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	other := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace, UID: "other"}, Spec: f.spec()}
	notOwned := desiredRound(other, plan.Round{Number: 1}, testImages)
	notOwned.OwnerReferences = nil
	f.Expect(f.client.Create(f.ctx, notOwned)).To(Succeed())
	// Its controller writes its status. Every later change would be the operator's.
	f.observeDaemonSets(f.daemonSets())
	before := f.daemonSets()["job-1"]
	f.create(workers(3))
	running := f.expectNotRunning(v1alpha1.ReasonNameConflict)
	f.Expect(running.Message).To(Equal("DaemonSet job-1 already exists and has a different owner, or none: it is left unchanged"))
	f.Expect(f.daemonSets()["job-1"]).To(Equal(before))
	f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}), "the other rounds are created")
	f.expectSteadyState()
	f.runs("a/0")
	f.expectRunning(v1alpha1.ReasonNameConflict)
	f.ends(0, "", "a/0", "b/0")
	f.expectNotRunning(v1alpha1.ReasonNameConflict)
	f.expectCounts(3, 0, 2, 0)

	f.Expect(f.client.Delete(f.ctx, notOwned)).To(Succeed())
	f.settle()
	f.expectRunning(v1alpha1.ReasonWorking)
	f.ends(0, "", "a/1")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// No work begins without the record.
func TestRecordThatIsNotOwned(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	notOwned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job-record-0", Namespace: f.namespace}, Data: map[string]string{"mine": "yes"}}
	f.Expect(f.client.Create(f.ctx, notOwned)).To(Succeed())
	f.create()
	f.Expect(f.expectNotRunning(v1alpha1.ReasonNameConflict).Message).To(HavePrefix("ConfigMap job-record-0 already exists"))
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.expectSteadyState()
	f.Expect(f.client.Delete(f.ctx, notOwned)).To(Succeed())
	f.settle()
	f.expectRunning(v1alpha1.ReasonWorking)
}

// An object that the Goop does not own was created after the cache was read. It is left unchanged.
func TestNameConflictBehindTheCache(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(suspended)
	notOwned := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "job-0", Namespace: f.namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, NodeSelector: map[string]string{"x": "y"}},
			},
		},
	}
	f.Expect(f.client.Create(f.ctx, notOwned)).To(Succeed())
	before := f.daemonSets()["job-0"]
	f.blind(&appsv1.DaemonSet{})
	goop := f.goop()
	goop.Spec.Suspend = false
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	for range 3 {
		_, _ = f.reconcile()
	}
	f.Expect(f.daemonSets()["job-0"]).To(Equal(before))
	f.use()
	f.settle()
	f.expectNotRunning(v1alpha1.ReasonNameConflict)
}

// The API server rejects the DaemonSet, and the condition names the field.
func TestRejectedDaemonSet(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.Expect(f.client.Create(f.ctx, &v1alpha1.Goop{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace},
		Spec: f.spec(func(s *v1alpha1.GoopSpec) {
			s.Resources = &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}
		}),
	})).To(Succeed())
	f.reconciles(3)
	f.Expect(f.expectNotRunning(v1alpha1.ReasonApplyFailed).Message).To(ContainSubstring("spec.template.spec.initContainers[1].resources.requests"))
	_, err := f.reconcile()
	f.Expect(isRejected(err)).To(BeTrue(), "the queue retries it with back-off: %v", err)
}

// A user has edited the record. The operator does nothing until the record can be read again, and nothing is lost.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(2))
	f.runs("a/0", "b/0")
	shard := f.shards()[0]
	before := shard.Data[record.Key]
	shard.Data[record.Key] += "nonsense\n"
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.ends(0, "", "a/0")
	f.Expect(f.expectRunning(v1alpha1.ReasonRecordUnreadable).Message).To(And(ContainSubstring("job-record-0"), ContainSubstring("line 2")))
	f.Expect(f.shards()[0].Data[record.Key]).To(HaveSuffix("nonsense\n"))
	f.Expect(f.places()).To(HaveLen(2))
	f.expectSteadyState()
	shard = f.shards()[0]
	shard.Data[record.Key] = before
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.settle()
	f.ends(0, "", "b/0")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// A user changes the record after the end so that it cannot be read, and a pod is evicted: finished work does not run again.
func TestRecordIsUnreadableAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(cleanup, work)
			f.runs("a/0", "b/0")
			f.ends(0, "", "a/0", "b/0")
			f.expect(v1alpha1.ConditionComplete, "True", v1alpha1.ReasonSucceeded)
			shard := f.shards()[0]
			shard.Data[record.Key] = "?\n"
			f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
			f.settle()
			f.removePod(f.pod("a/0"))
			f.simulateDaemonSets()
			f.kubelet("a/0", isRunning)
			f.settle()
			f.Expect(f.places()).To(Equal([]string{"b/0"}))
			f.Expect(f.shards()[0].Data[record.Key]).To(Equal("?\n"), "it is left as it is")
		})
	}
}

// The operator adds to a shard, and keeps the labels and annotations of other writers.
func TestShardKeepsWhatOthersWrote(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create()
	shard := f.shards()[0]
	shard.Annotations = map[string]string{"others": "annotation"}
	shard.Data["others"] = "data"
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.ends(0, "", "a/0")
	f.Expect(f.shards()[0].Annotations).To(HaveKey("others"))
	f.Expect(f.shards()[0].Data).To(HaveKey("others"))
	f.Expect(f.record().Succeeded).To(Equal(int32(1)))
}
