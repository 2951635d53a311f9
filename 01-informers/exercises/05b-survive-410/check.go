// Package survive is exercise 05b: go on after the API server has forgotten.
package survive

import (
	"example.com/workbook/01-informers/exercises/internal/follow"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry = follow.Func

// Check checks that what happens in a gap is reported, whichever way the API server says that it has forgotten.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("without a gap each change is reported once", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Delete("b")
		r.Create("d")
		r.Expect("DELETED b", "ADDED d=1")
	})
	ok = ok && t.Behaviour("after a 410 in the stream, new and changed objects are reported", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.Gap(true, func() { r.Set("a", "3"); r.Create("d") })
		r.Expect("MODIFIED a=3", "ADDED d=1")
	})
	t.Behaviour("after a 410 as the status of the response, too", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.Gap(false, func() { r.Set("a", "3"); r.Create("d") })
		r.Expect("MODIFIED a=3", "ADDED d=1")
	})
	if !ok {
		return
	}
	deletions(t, work.Entry)
	t.Behaviour("what did not change in the gap is not reported", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.Gap(true, func() {})
		r.Watching()
		r.ExpectNothingElse()
	})
	t.Behaviour("a change of a label in the gap is reported, too", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.Gap(true, func() { r.Label("a") })
		r.Expect("MODIFIED a=2")
	})
	t.Behaviour("it watches from the new list on", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.Gap(true, func() { r.Set("a", "3") })
		r.Expect("MODIFIED a=3")
		r.Watching()
		r.Set("a", "4")
		r.Delete("c")
		r.Expect("MODIFIED a=4", "DELETED c")
	})
	t.Behaviour("a watch that fails for another reason leads to no new list", func(b *check.B) {
		r := begun(b, work.Entry)
		before := lists(r)
		r.Wire.Fail(1, kube.Watches)
		r.Wire.CutWatches()
		r.Set("a", "3")
		r.Wire.Release()
		r.Expect("MODIFIED a=3")
		if n := lists(r) - before; n > 0 {
			b.Fatalf("the API server was away for a moment, and %d new lists were requested", n)
		}
	})
	t.Behaviour("a new list that fails is tried again", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.Fail(1, kube.Lists)
		r.Wire.Gap(true, func() { r.Set("a", "3") })
		r.Expect("MODIFIED a=3")
	})
}

// deletions checks deletions in a gap, and before one.
func deletions(t *check.T, entry Entry) {
	t.Behaviour("a deletion that the watch reported is not reported again after a 410", func(b *check.B) {
		r := begun(b, entry)
		r.Delete("b")
		r.Expect("DELETED b")
		r.Wire.Gap(true, func() { r.Set("a", "3") })
		r.Expect("MODIFIED a=3")
		r.Watching()
		r.ExpectNothingElse()
	})
	ok := t.Behaviour("what was deleted in the gap is reported", func(b *check.B) {
		r := begun(b, entry)
		r.Wire.Gap(true, func() { r.Delete("b") })
		r.Expect("DELETED b")
	})
	if !ok {
		return
	}
	t.Behaviour("what the watch had added, and was deleted in the gap, is reported, too", func(b *check.B) {
		r := begun(b, entry)
		r.Create("d")
		r.Expect("ADDED d=1")
		r.Wire.Gap(true, func() { r.Delete("d") })
		r.Expect("DELETED d")
	})
	t.Behaviour("a deletion that a new list showed is reported with the last object that was seen", func(b *check.B) {
		r := begun(b, entry)
		r.Wire.Gap(true, func() { r.Delete("a") })
		r.Expect("DELETED a")
		if value := r.Last("a").Data["value"]; value != "2" {
			b.Fatalf("DELETED came with an object whose data.value is %q, and in the object that was seen last it was 2", value)
		}
	})
	t.Behaviour("a deletion that a new list showed is not reported again after the next 410", func(b *check.B) {
		r := begun(b, entry)
		r.Wire.Gap(true, func() { r.Delete("b") })
		r.Expect("DELETED b")
		r.Watching()
		r.Wire.Gap(true, func() { r.Set("a", "3") })
		r.Expect("MODIFIED a=3")
		r.Watching()
		r.ExpectNothingElse()
	})
}

// lists is how many lists were requested.
func lists(r *follow.Run) int {
	n := 0
	for _, request := range r.Wire.Requests() {
		if kube.Lists(request) {
			n++
		}
	}
	return n
}

// begun is a run that has listed, and has reported a change by its watch.
func begun(b *check.B, entry Entry) *follow.Run {
	r := follow.Start(b, entry, "a", "b", "c")
	r.Expect("ADDED a=1", "ADDED b=1", "ADDED c=1")
	r.Watching()
	r.Set("a", "2")
	r.Expect("MODIFIED a=2")
	return r
}
