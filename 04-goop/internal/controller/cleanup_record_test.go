package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// immutableRecord makes the record immutable, as a user who may edit it can.
func (f *goopTestEnv) immutableRecord() {
	shard := f.shards()[0]
	shard.Immutable = new(true)
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	f.use()
}

// The record cannot be written while a Goop is deleted. Its work ends and its cleanup runs nevertheless, also where it was
// not recorded that work had begun.
func TestCleanupRunsThoughTheRecordCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*goopTestEnv){
		"rejected": (*goopTestEnv).rejectingRecords, "failing": (*goopTestEnv).failingRecords, "immutable": (*goopTestEnv).immutableRecord,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b", "c")
			f.create(cleanup, workers(2))
			f.runs("a/0")
			f.kubelet("b/0", isRunning)
			f.Expect(f.record().Begun).To(HaveLen(1))
			fail(f)
			f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
			f.clock.SetTime(time.Now())
			f.failsToSettle()
			f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup", "c/cleanup"}), "in doubt all nodes")
			f.kubelet("a/cleanup", hasFinished(0, ""))
			f.failsToSettle()
			f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup", "c/cleanup"}), "its pod has the result")
			f.kubelet("b/cleanup", hasFinished(0, ""))
			f.kubelet("c/cleanup", hasFinished(0, ""))
			f.failsToSettle()
			f.Expect(f.recorded()).To(ContainElement(And(HavePrefix("Warning "+v1alpha1.ReasonCleanupIncomplete), ContainSubstring("on 3 nodes"))))
			f.Expect(f.pods).To(And(HaveKeyWithValue("a/cleanup", 1), HaveKeyWithValue("b/cleanup", 1), HaveKeyWithValue("c/cleanup", 1)))
			f.clock.Step(time.Hour)
			f.failsToSettle()
			f.Expect(f.gone()).To(BeTrue())
		})
	}
}
