package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// edit changes the first ConfigMap of the record as a user, and returns a function that undoes it.
func (f *goopTestEnv) edit(text string) (undo func()) {
	write := func(text string) (before string) {
		shard := f.shards()[0]
		before, shard.Data = shard.Data[record.Key], map[string]string{record.Key: text}
		f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
		return before
	}
	before := write(text)
	return func() { write(before) }
}

// failingRecords replaces the reconciler by one whose writes of the record fail with an error that may pass.
func (f *goopTestEnv) failingRecords() {
	f.use()
	f.reconciler.Client = gatedClient{interceptor.NewClient(f.watching(), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if _, isShard := obj.(*corev1.ConfigMap); isShard {
				return apierrors.NewInternalError(errors.New("failed calling webhook"))
			}
			return c.Update(ctx, obj, opts...)
		},
	})}
}

// failsToSettle lets the controllers work for some time while requests fail.
func (f *goopTestEnv) failsToSettle() {
	for range 10 {
		_, _ = f.reconcile()
		f.simulateDaemonSets()
		f.clock.Step(writeInterval)
	}
}

// A user changes the record so that it cannot be read. Suspend and deadline end the work nevertheless, and no work begins.
func TestWorkEndsThoughTheRecordCannotBeRead(t *testing.T) {
	t.Parallel()
	t.Run("suspend", func(t *testing.T) {
		t.Parallel()
		f := newGoopTestEnv(t, "a", "b")
		f.create(workers(2), deadline(60))
		f.runs("a/0", "b/0")
		undo := f.edit("?\n")
		f.change(suspended)
		f.Expect(f.places()).To(BeEmpty())
		f.expect(v1alpha1.ConditionSuspended, "True", v1alpha1.ReasonSuspended)
		f.expectNotRunning(v1alpha1.ReasonRecordUnreadable)
		f.clock.Step(time.Hour)
		f.change(resumed)
		f.Expect(f.places()).To(BeEmpty(), "what has finished is not known")
		f.Expect(f.goop().Ended()).To(BeFalse(), "the deadline counts from the resume")
		undo()
		f.settle()
		f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}))
	})
	for name, deadlineOf := range map[string]func(*goopTestEnv){
		"deadline": func(*goopTestEnv) {},
		"deadline after a resume": func(f *goopTestEnv) {
			f.change(suspended)
			f.clock.Step(time.Hour)
			f.change(resumed)
			f.runs("a/0", "b/0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(workers(2), deadline(60))
			f.runs("a/0", "b/0")
			deadlineOf(f)
			f.edit("?\n")
			f.settle()
			f.expectRunning(v1alpha1.ReasonRecordUnreadable)
			result, err := f.reconcile()
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)))
			f.clock.Step(result.RequeueAfter)
			f.settle()
			f.expect(v1alpha1.ConditionFailed, "True", v1alpha1.ReasonDeadlineExceeded)
			f.Expect(f.places()).To(BeEmpty())
		})
	}
}

// The record cannot be written for some time, and work ends meanwhile. The cleanup also runs where work had begun, which
// could not be recorded.
func TestWorkEndsThoughItsNodesCannotBeRecorded(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*goopTestEnv){"rejected": (*goopTestEnv).rejectingRecords, "failing": (*goopTestEnv).failingRecords} {
		for end, stop := range map[string]func(*goopTestEnv){
			"suspend": func(f *goopTestEnv) {
				goop := f.goop()
				goop.Spec.Suspend = true
				f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
			},
			"deadline": func(f *goopTestEnv) { f.clock.Step(time.Hour) },
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				t.Parallel()
				f := newGoopTestEnv(t, "a", "b", "c")
				f.create(cleanup, workers(2), deadline(1800))
				f.runs("a/0")
				f.kubelet("b/0", isRunning)
				f.Expect(f.record().Begun).To(HaveLen(1))
				fail(f)
				stop(f)
				f.failsToSettle()
				f.Expect(f.places()).To(BeEmpty())
				f.Expect(f.record().Begun).To(HaveLen(1))
				f.use()
				f.settle()
				f.Expect(f.record().Begun).To(HaveLen(3), "in doubt all nodes")
				f.Expect(f.record().Started.IsZero()).To(BeTrue())
				f.delete()
				f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup", "c/cleanup"}))
			})
		}
	}
}

// The operator is restarted without --allow-host-access, and the record cannot be written. All DaemonSets are deleted at
// once, also while the record of an earlier Goop of the same name cannot be released.
func TestHostAccessOfAllRoundsEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, earlier := range map[string]bool{"alone": false, "after an earlier Goop": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.reconciler.allowHostAccess = true
			f.create(cleanup, withHost, workers(6))
			f.runs("a/0")
			f.kubelet("b/0", isRunning)
			f.Expect(f.daemonSets()).To(HaveLen(3))
			if earlier {
				goop := f.goop()
				goop.UID = "earlier"
				shard := desiredShard(goop, record.Shard{Number: 1})
				shard.OwnerReferences = nil
				f.Expect(f.client.Create(f.ctx, shard)).To(Succeed())
				f.Expect(f.client.Delete(f.ctx, shard)).To(Succeed())
			}
			f.reconciler.allowHostAccess = false
			f.rejectingRecords()
			f.reconciles(1)
			f.Expect(f.daemonSets()).To(BeEmpty())
			f.simulateDaemonSets()
			f.reconciles(1)
			f.Expect(f.record().Begun).To(HaveLen(1))
			f.use()
			f.settle()
			f.Expect(f.record().Begun).To(HaveLen(2), "in doubt all nodes")
		})
	}
}

// A user removes entries of the record, or all of them. It is not taken for a new one: the deadline does not begin anew, and
// what has finished does not run again.
func TestRecordThatLacksEntriesCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ finished, left string }{
		"its start":              {"", ""},
		"all":                    {"a/0", ""},
		"a result":               {"a/0", "s 2026-01-01T00:00:00Z\n"},
		"a result, and its node": {"a/0", "s 2026-01-01T00:00:00Z\nb no-node\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(cleanup, deadline(3600))
			f.runs("a/0", "b/0")
			if test.finished != "" {
				f.ends(0, "", test.finished)
			}
			start := f.goop().Status.StartTime
			undo := f.edit(test.left)
			f.clock.Step(time.Minute)
			f.settle()
			f.expectRunning(v1alpha1.ReasonRecordUnreadable)
			f.Expect(f.shards()[0].Data).To(HaveKeyWithValue(record.Key, test.left), "it is left unchanged")
			undo()
			f.settle()
			f.expectRunning(v1alpha1.ReasonWorking)
			f.Expect(f.goop().Status.StartTime).To(Equal(start))
			f.edit(test.left)
			f.delete()
			f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
			f.Expect(f.pods).To(And(HaveKeyWithValue("a/0", 1), HaveKeyWithValue("b/0", 1)))
		})
	}
}

// withRecord replaces the reconciler by one whose cache has these ConfigMaps of the record.
func (f *goopTestEnv) withRecord(shards []corev1.ConfigMap) {
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if configMaps, ok := list.(*corev1.ConfigMapList); ok {
				configMaps.Items = shards
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// A leader crashes after it has recorded a result and taken the DaemonSet from the node, before or after it has written the
// status. The cache of its successor has the DaemonSet and not the result. The work does not run again, and the record
// counts as readable.
func TestRecordedWorkDoesNotRunAgainBehindTheCache(t *testing.T) {
	t.Parallel()
	for name, inStatus := range map[string]int32{"before the status": 0, "after the status": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create()
			old := f.shards()
			f.ends(0, "", "a/0")
			f.Expect(f.client.Delete(f.ctx, f.pod("a/0"))).To(Succeed())
			f.reconciles(3)
			f.settle()
			f.Expect(f.places()).To(Equal([]string{"b/0"}))
			goop := f.goop()
			goop.Status.Succeeded = inStatus
			f.Expect(f.client.Status().Update(f.ctx, goop)).To(Succeed())
			f.withRecord(old)
			for range 4 {
				f.attempts(1)
				f.simulateDaemonSets()
				f.clock.Step(2 * writeInterval)
			}
			f.Expect(f.pods).To(HaveKeyWithValue("a/0", 1))
			f.expectRunning(v1alpha1.ReasonWorking)
			f.use()
			f.settle()
			f.ends(0, "", "b/0")
			f.expect(v1alpha1.ConditionComplete, "True", v1alpha1.ReasonSucceeded)
			f.expectCounts(2, 0, 2, 0)
		})
	}
}

// The cache still has a record that cannot be read, and a user has repaired it since. It counts as readable.
func TestRecordIsNotUnreadableBehindTheCache(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create()
	undo := f.edit("?\n")
	unreadable := f.shards()
	undo()
	f.withRecord(unreadable)
	f.attempts(2)
	f.expectRunning(v1alpha1.ReasonWorking)
	f.ends(0, "", "a/0")
	f.expect(v1alpha1.ConditionComplete, "True", v1alpha1.ReasonSucceeded)
}
