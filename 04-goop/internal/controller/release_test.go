package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// A policy rejects the release of the record. The outcome of the cleanup is reported nevertheless, followed by the reason
// why the Goop still exists. When cleanupTimeoutSeconds has expired, the Goop is removed.
func TestReleaseOfTheRecordIsRejected(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	f.delete()
	f.kubelet("a/cleanup", hasFinished(0, ""))
	f.recorded()
	for !isConcluded(f.goop()) {
		f.clock.Step(time.Second)
		f.reconciles(1)
	}
	f.rejectingRecords()
	f.settle()
	f.Expect(f.expectNotRunning(v1alpha1.ReasonCleanedUp).Message).To(And(HavePrefix("cleanupCmd exited with 0"), ContainSubstring("a policy")))
	before := f.requests.written()
	f.reconciles(3)
	f.Expect(f.requests.written()).To(Equal(before), "the message is the same each time")
	f.clock.Step(time.Hour)
	f.settle()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(HaveExactElements(HavePrefix("Normal CleanedUp cleanupCmd exited with 0")))
}
