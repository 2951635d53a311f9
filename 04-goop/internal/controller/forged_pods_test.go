package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// A user creates a pod with the labels of the work and a round that cannot exist. It is not recorded, because the record
// would become invalid.
func TestPodOfARoundThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, round := range []string{"99", "32", "x", ""} {
		t.Run(round, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create()
			pod := podOf(f.daemonSets()["job-0"], f.node("a"))
			pod.OwnerReferences[0].UID = "other"
			pod.Labels[v1alpha1.LabelRound] = round
			f.Expect(f.client.Create(f.ctx, pod)).To(Succeed())
			setWork(pod, hasFinished(0, ""))
			f.Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())
			_, err := f.reconcile()
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(f.record().Finished).To(BeEmpty())
			f.settle()
			f.ends(0, "", "a/0", "b/0")
			f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		})
	}
}

// A shard has lost its text. What it recorded is unknown, so the work does not run again.
func TestShardWithoutItsText(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.ends(0, "", "a/0")
	f.leave("a")
	shard := f.shards()[0]
	text := shard.Data[record.Key]
	shard.Data = map[string]string{"others": "data"}
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.join("a")
	f.ends(0, "", "b/0")
	f.Expect(conditionOf(f.goop().Status.Conditions, v1alpha1.ConditionRunning).Reason).To(Equal(v1alpha1.ReasonRecordUnreadable))
	f.Expect(conditionOf(f.goop().Status.Conditions, v1alpha1.ConditionRunning).Message).To(ContainSubstring(`ConfigMaps job-record-0 and so on cannot be read, and no work begins until it can: shard 0 has no "record"`))
	f.Expect(f.shards()[0].Data).NotTo(HaveKey(record.Key), "it is left unchanged")
	shard = f.shards()[0]
	shard.Data[record.Key] = text
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.settle()
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	f.expectCounts(2, 0, 2, 0)
}

// A user empties the second shard, which lists where work has begun and has no results. It is not taken for a new one.
func TestSecondShardIsEmptied(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0")
	f.fillShard()
	f.runs("b/0")
	shard := f.shards()[1]
	f.Expect(shard.Data[record.Key]).To(ContainSubstring("b " + f.node("b")))
	shard.Data[record.Key] = ""
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.settle()
	f.Expect(f.expectRunning(v1alpha1.ReasonRecordUnreadable).Message).To(ContainSubstring(`shard 1 has no "record"`))
	f.Expect(f.shards()[1].Data).To(HaveKeyWithValue(record.Key, ""), "it is left unchanged")
}

// Nothing is written to it when the Goop is deleted either: the cleanup runs wherever work may have run.
func TestCleanupWithAShardWithoutItsText(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	shard := f.shards()[0]
	shard.Data = nil
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
	f.Expect(f.shards()[0].Data).To(BeEmpty())
	f.ends(0, "", "a/cleanup", "b/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.expectReleased()
}

// A user copies a DaemonSet of the work, under the number of a round that there cannot be. What its pods say is not recorded,
// and they end.
func TestDaemonSetOfARoundThatCannotBe(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(workers(1))
	f.runs("a/0")
	daemonSet := f.daemonSets()["job-0"]
	daemonSet.Name, daemonSet.ResourceVersion, daemonSet.UID = "job-32", "", ""
	f.Expect(f.client.Create(f.ctx, daemonSet)).To(Succeed())
	f.simulateDaemonSets()
	f.kubelet("a/32", hasFinished(0, ""))
	f.clock.Step(2 * writeInterval)
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
	f.expectRunning(v1alpha1.ReasonWorking)
	f.ends(0, "", "a/0")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	f.expectCounts(1, 0, 1, 0)
}
