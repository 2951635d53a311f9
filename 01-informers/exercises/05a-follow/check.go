// Package follow is exercise 05a: list once, watch, and go on when the watch ends.
package follow

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/workbook/01-informers/exercises/internal/follow"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry = follow.Func

// failures is how many requests fail in a row while the API server is away.
const failures = 3

// Check checks that each change is reported once, with and without a gap.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("what is there is reported once, as ADDED", func(b *check.B) {
		r := follow.Start(b, work.Entry, "a", "b")
		r.Expect("ADDED a=1", "ADDED b=1")
	})
	ok = ok && t.Behaviour("each change is reported once", func(b *check.B) {
		r := follow.Start(b, work.Entry, "a", "b")
		r.Expect("ADDED a=1", "ADDED b=1")
		r.Watching()
		r.Set("a", "2")
		r.Expect("MODIFIED a=2")
		r.Delete("b")
		r.Create("c")
		r.Expect("DELETED b", "ADDED c=1")
	})
	if !ok {
		return
	}
	t.Behaviour("what changes while no watch is open is reported once", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.CutWatches()
		r.Set("a", "3")
		r.Create("c")
		r.Wire.Release()
		r.Expect("MODIFIED a=3", "ADDED c=1")
		r.ExpectNothingElse()
	})
	t.Behaviour("a deletion while no watch is open is reported", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.CutWatches()
		r.Delete("b")
		r.Wire.Release()
		r.Expect("DELETED b")
	})
	t.Behaviour("a deletion that was reported is not reported again by the next watch", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Delete("b")
		r.Expect("DELETED b")
		r.Wire.CutWatches()
		r.Wire.Release()
		r.ExpectNothingElse()
	})
	t.Behaviour("a watch that ends leads to no second list", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.CutWatches()
		r.Wire.Release()
		r.Watching()
		if n := len(r.Wire.Requests("list")); n > 1 {
			b.Fatalf("%d lists were requested", n)
		}
	})
	t.Behaviour("a watch that cannot be begun is begun later", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.Fail(failures, kube.Watches)
		r.Wire.CutWatches()
		r.Set("a", "3")
		r.Wire.Release()
		r.Expect("MODIFIED a=3")
	})
	t.Behaviour("while the API server is away, it tries again and again, with a pause", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Away()
		r.Set("a", "3")
		r.Expect("MODIFIED a=3")
	})
	t.Behaviour("a bookmark is no change", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.Bookmark(r.List().ResourceVersion)
		r.Wire.CutWatches()
		r.Wire.Release()
		r.Watching()
		r.Set("a", "3")
		r.Expect("MODIFIED a=3")
	})
	t.Behaviour("an ERROR in the stream is no change, and no end", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.StreamError(apierrors.NewInternalError(errors.New("too much to do")))
		r.Wire.CutWatches()
		r.Set("a", "3")
		r.Wire.Release()
		r.Expect("MODIFIED a=3")
	})
	t.Behaviour("one call of handle ends before the next one begins", func(b *check.B) {
		r := follow.StartSlow(b, work.Entry, 20*time.Millisecond, "a", "b", "c", "d")
		r.Expect("ADDED a=1", "ADDED b=1", "ADDED c=1", "ADDED d=1")
		r.ExpectOneAtATime()
		// What changes while no watch is open comes at once.
		r.Watching()
		r.Wire.CutWatches()
		for _, name := range []string{"a", "b", "c"} {
			r.Set(name, "2")
		}
		r.Wire.Release()
		r.Expect("MODIFIED a=2", "MODIFIED b=2", "MODIFIED c=2")
		r.ExpectOneAtATime()
	})
	t.Behaviour("it returns when its context ends", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Stop()
	})
}

// begun is a run that has listed, and has reported a change by its watch.
func begun(b *check.B, entry Entry) *follow.Run {
	r := follow.Start(b, entry, "a", "b")
	r.Expect("ADDED a=1", "ADDED b=1")
	r.Watching()
	r.Set("a", "2")
	r.Expect("MODIFIED a=2")
	return r
}
