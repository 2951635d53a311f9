package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// A user creates a ConfigMap of the record without node names before the operator does. It is not trusted: its start time
// is ignored, and no work is recorded in it.
func TestForgedShardThatNamesNoNode(t *testing.T) {
	t.Parallel()
	for name, immutable := range map[string]bool{"with a time long ago": false, "that cannot be changed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.create(cleanup, suspended, deadline(3600))
			shard := desiredShard(f.goop(), record.Shard{Text: "s 2020-01-01T00:00:00Z\n"})
			shard.Immutable = new(immutable)
			f.Expect(f.client.Create(f.ctx, shard)).To(Succeed())
			f.change(resumed)
			f.expectRunning(v1alpha1.ReasonWorking)
			f.Expect(f.goop().Status.RecordUIDs).To(Equal([]string{string(f.shards()[0].UID)}))
			f.Expect(f.shards()[0].UID).NotTo(Equal(shard.UID))
			f.ends(0, "", "a/0")
			f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		})
	}
}

// A ConfigMap of that name with other content is left unchanged.
func TestForgedShardWithOtherData(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(suspended)
	shard := desiredShard(f.goop(), record.Shard{})
	shard.Data = map[string]string{"mine": "yes"}
	f.Expect(f.client.Create(f.ctx, shard)).To(Succeed())
	f.change(resumed)
	f.Expect(f.expectNotRunning(v1alpha1.ReasonNameConflict).Message).To(ContainSubstring("job-record-0"))
	f.Expect(f.shards()[0].UID).To(Equal(shard.UID))
	f.Expect(f.client.Delete(f.ctx, shard)).To(Succeed())
	f.settle()
	f.expectRunning(v1alpha1.ReasonWorking)
}

// More ConfigMaps than a status has room for affect neither the status nor the deletion of the Goop.
func TestManyForgedShards(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	for number := 1; number <= record.MaxShards; number++ {
		f.forge(number, "")
	}
	f.runs("a/0")
	f.expectCounts(1, 1, 0, 0)
	f.Expect(f.goop().Status.RecordUIDs).To(HaveLen(1))
	f.delete()
	f.ends(0, "", "a/cleanup")
	f.Expect(f.gone()).To(BeTrue())
}
