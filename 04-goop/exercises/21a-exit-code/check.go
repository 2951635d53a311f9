// Package exitcode is exercise 21a: a client that creates an object, waits for its end, and deletes it.
package exitcode

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (int, error)

const (
	patience = 5 * time.Second
	// silence is how long a watch brings nothing. What Run notices meanwhile, it has read by itself.
	silence = 2 * time.Second
	// updates is how often the status changes while it waits.
	updates = 5
)

// Check runs a Goop that ends in each way.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("it waits for the end of the work, and returns 0 if all workers succeeded", func(b *check.B) {
		r := newRun(b, work.Entry)
		r.start()
		r.working()
		r.ends(v1alpha1.ConditionComplete, nil)
		r.returns(0)
	})
	if !ok {
		return
	}
	t.Behaviour("a Goop that has ended is deleted", func(b *check.B) {
		r := newRun(b, work.Entry)
		r.start()
		r.ends(v1alpha1.ConditionComplete, nil)
		r.wait()
		r.isGone()
	})
	t.Behaviour("it returns the highest exit code of the workers", func(b *check.B) {
		r := newRun(b, work.Entry)
		r.start()
		r.ends(v1alpha1.ConditionFailed, []int32{1, 5, 2})
		r.returns(5)
	})
	checkContext(t, work.Entry)
	t.Behaviour("a Goop of the same name that another user has created is not deleted", func(b *check.B) {
		r := newRun(b, work.Entry)
		r.start()
		r.replaceBeforeDelete()
		r.ends(v1alpha1.ConditionComplete, nil)
		r.wait()
		r.isThere()
	})
	t.Behaviour("the end of another Goop of the same name is not its end", func(b *check.B) {
		r := newRun(b, work.Entry)
		r.start()
		release := r.holdDeletions()
		r.replace()
		r.ends(v1alpha1.ConditionComplete, nil)
		release()
		r.fails("a user has deleted the Goop, and another one of that name has ended")
		r.isThere()
	})
	t.Behaviour("a Goop that a user deletes is an error", func(b *check.B) {
		r := newRun(b, work.Entry)
		r.start()
		r.delete()
		r.fails("a user has deleted the Goop")
	})
	t.Behaviour("a Goop that a user deletes before the watch begins is an error, too", func(b *check.B) {
		r := newRun(b, work.Entry)
		r.deleteBeforeWatch()
		r.call()
		r.fails("a user has deleted the Goop")
	})
	t.Behaviour("if the name is taken it returns an error, and deletes nothing", func(b *check.B) {
		r := newRun(b, work.Entry)
		r.create()
		r.call()
		r.fails("the name of the Goop is taken")
		r.isThere()
	})
	t.Behaviour("it does not poll", func(b *check.B) {
		r := newRun(b, work.Entry)
		r.start()
		for range updates {
			r.working()
		}
		r.ends(v1alpha1.ConditionComplete, nil)
		r.wait()
		// It may read the Goop once for each event: those come with the changes, and with its creation and its end.
		if reads := r.reads(); len(reads) > updates+3 {
			b.Fatalf("the status has changed %d times, and it sent %d requests to read: %s, …", updates, len(reads), reads[0])
		}
		r = newRun(b, work.Entry)
		r.start()
		r.wire.SilenceWatches(kube.Watches)
		r.ends(v1alpha1.ConditionComplete, nil)
		r.waitsOn()
	})
}

// checkContext ends the context.
func checkContext(t *check.T, entry Entry) {
	t.Behaviour("when the deadline expires it returns 124, and the Goop is deleted", func(b *check.B) {
		r := newRun(b, entry)
		r.start()
		r.working()
		r.cancel(context.DeadlineExceeded)
		r.returns(124)
		r.isGone()
	})
	t.Behaviour("when it is cancelled it returns 130, and the Goop is deleted", func(b *check.B) {
		r := newRun(b, entry)
		r.start()
		r.working()
		r.cancel(context.Canceled)
		r.returns(130)
		r.isGone()
	})
	t.Behaviour("a Goop that has ended is deleted also if the context ends at that moment", func(b *check.B) {
		r := newRun(b, entry)
		r.start()
		r.cancelAtDelete()
		r.ends(v1alpha1.ConditionComplete, nil)
		r.wait()
		r.isGone()
	})
	t.Behaviour("it is the same if the context ends while the watch begins", func(b *check.B) {
		for _, end := range []struct {
			err  error
			code int
		}{{context.Canceled, 130}, {context.DeadlineExceeded, 124}} {
			r := newRun(b, entry)
			r.cancelAtWatch(end.err)
			r.returns(end.code)
			r.isGone()
		}
	})
}
