package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// A policy that rejects the record does not keep work from ending when the Goop is suspended, even if a result cannot be
// recorded.
func TestWorkIsSuspendedThoughTheRecordIsRejected(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*v1alpha1.GoopSpec)
		ends   string
		want   []string
	}{
		"everywhere":               {func(*v1alpha1.GoopSpec) {}, "", nil},
		"with a jobCount":          {workers(2), "", nil},
		"with a cleanup":           {cleanup, "", nil},
		"a result is not recorded": {workers(2), "a/0", []string{"a/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(test.change)
			f.runs("a/0", "b/0")
			if test.ends != "" {
				f.kubelet(test.ends, hasFinished(0, ""))
			}
			f.rejectingRecords()
			f.change(suspended)
			f.Expect(f.places()).To(Equal(test.want))
			f.expectNotRunning(v1alpha1.ReasonApplyFailed)
			f.use()
			f.settle()
			f.expect(v1alpha1.ConditionSuspended, "True", v1alpha1.ReasonSuspended)
			f.Expect(f.record().Started.IsZero()).To(BeTrue())
			f.change(resumed)
			for _, place := range f.places() {
				if place != test.ends {
					f.ends(0, "", place)
				}
			}
			f.expect(v1alpha1.ConditionComplete, "True", v1alpha1.ReasonSucceeded)
		})
	}
}

// A rejected record does not keep the deadline from beginning anew when such a Goop is resumed.
func TestDeadlineBeginsAnewThoughTheRecordWasRejected(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(2), deadline(60))
	f.runs("a/0", "b/0")
	f.clock.Step(30 * time.Second)
	f.rejectingRecords()
	f.change(suspended)
	f.Expect(f.places()).To(BeEmpty())
	f.clock.Step(time.Hour)
	goop := f.goop()
	goop.Spec.Suspend = false
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.use()
	f.settle()
	f.expectRunning(v1alpha1.ReasonWorking)
	f.Expect(f.goop().Status.StartTime.Time).To(BeTemporally("==", f.clock.Now().Truncate(time.Second)))
	f.clock.Step(time.Minute)
	f.settle()
	f.expect(v1alpha1.ConditionFailed, "True", v1alpha1.ReasonDeadlineExceeded)
}
