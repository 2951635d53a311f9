package record

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/workbook/04-goop/internal/plan"
)

// facts is the content of a record, without its text.
func facts(r *Record) Record {
	content := *r
	content.shards, content.changed = nil, 0
	return content
}

// drawEntry adds a random entry to a record. The entry may exist already.
func drawEntry(t *rapid.T, r *Record) {
	node := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?`)
	if rapid.Bool().Draw(t, "known node") {
		node = rapid.SampledFrom([]string{"a", "b", "s", "f"})
	}
	switch rapid.IntRange(0, 9).Draw(t, "entry") {
	case 0:
		r.Start(time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")))
	case 1:
		r.Suspend()
	case 2, 3:
		r.Begin(node.Draw(t, "node"))
	case 4:
		r.Clean(node.Draw(t, "node"), rapid.SampledFrom([]int32{0, 1, 255}).Draw(t, "exit"), rapid.Int32Range(1, 1001).Draw(t, "tries"))
	default:
		r.Finish(Finish{
			Place:    plan.Place{Node: node.Draw(t, "node"), Round: rapid.IntRange(0, 31).Draw(t, "round")},
			ExitCode: rapid.SampledFrom([]int32{0, 0, 1, 137, 255}).Draw(t, "exit"),
			Tries:    rapid.Int32Range(1, 1001).Draw(t, "tries"),
			Output:   rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "output"),
		})
	}
}

// Whatever is added, and whenever the record is written and read again, its content stays the same, and the written text
// does not change.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shards := map[int]string{}
		r := read(t, shards)
		for range rapid.IntRange(0, 40).Draw(t, "entries") {
			drawEntry(t, r)
			if !rapid.Bool().Draw(t, "written") {
				continue
			}
			after := written(shards, r)
			for number, text := range shards {
				if !strings.HasPrefix(after[number], text) {
					t.Fatalf("shard %d was\n%s\nand is\n%s", number, text, after[number])
				}
			}
			again := read(t, after)
			if !reflect.DeepEqual(facts(again), facts(r)) {
				t.Fatalf("it has %+v, and had %+v", facts(again), facts(r))
			}
			r, shards = again, after
		}
	})
}

// An edit anywhere in a record is either rejected, or results in a record that can be written and read.
func TestEveryEditIsRejectedOrValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := read(t, nil)
		for range rapid.IntRange(1, 5).Draw(t, "entries") {
			drawEntry(t, r)
		}
		text := written(nil, r)[0]
		begin := rapid.IntRange(0, len(text)).Draw(t, "begin")
		end := rapid.IntRange(begin, min(len(text), begin+10)).Draw(t, "end")
		edit := rapid.OneOf(rapid.StringN(0, 3, -1), rapid.SampledFrom([]string{" ", "\n", "-", "\r\n", `"`}))
		text = text[:begin] + edit.Draw(t, "edit") + text[end:]
		edited, err := Read(map[int]string{0: text}, 1)
		if err != nil {
			return
		}
		drawEntry(t, edited)
		after := written(map[int]string{0: text}, edited)
		if !strings.HasPrefix(after[0], text) {
			t.Fatalf("%q becomes %q", text, after[0])
		}
		again, err := Read(after, len(after))
		if err != nil || !reflect.DeepEqual(facts(again), facts(edited)) {
			t.Fatalf("it has %+v, and had %+v: %v", again, facts(edited), err)
		}
	})
}

// leader is an operator with the state that it has read: the texts of shards, and how often each was written by then.
type leader struct {
	texts    map[int]string
	versions map[int]int
}

// Two leaders record, and one of them may have a stale state. A shard is updated only under the resourceVersion that was
// read, and created only if it does not exist, because the API server checks that. In any order of their writes, the
// record can be read, and recorded entries do not change.
func TestTwoLeaders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// The first shard has room for some entries.
		store := leader{texts: map[int]string{0: strings.Repeat("s -\n", ShardSize/4-200)}, versions: map[int]int{}}
		leaders := [2]leader{}
		recorded := map[plan.Place]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			one := &leaders[rapid.IntRange(0, 1).Draw(t, "leader")]
			if one.texts == nil || rapid.Bool().Draw(t, "reads") {
				one.texts, one.versions = maps.Clone(store.texts), maps.Clone(store.versions)
			}
			r := read(t, one.texts)
			for range rapid.IntRange(1, 3).Draw(t, "entries") {
				// All leaders observe the same end of a worker.
				node := rapid.SampledFrom([]string{"a", "b", strings.Repeat("c", 253), strings.Repeat("d", 200)}).Draw(t, "node")
				round := rapid.IntRange(0, 3).Draw(t, "round")
				r.Finish(Finish{Place: plan.Place{Node: node, Round: round}, ExitCode: int32(round), Tries: 1})
			}
			for _, shard := range r.Changed() {
				if store.versions[shard.Number] != one.versions[shard.Number] {
					break
				}
				store.texts[shard.Number], one.texts[shard.Number] = shard.Text, shard.Text
				store.versions[shard.Number]++
				one.versions[shard.Number]++
			}
			now, err := Read(store.texts, len(store.texts))
			if err != nil {
				t.Fatal(err)
			}
			for place := range recorded {
				if !now.Finished[place] {
					t.Fatalf("%v is not recorded any more", place)
				}
			}
			if int(now.Succeeded+now.Failed) != len(now.Finished) {
				t.Fatalf("%d workers are counted as %d", len(now.Finished), now.Succeeded+now.Failed)
			}
			recorded = now.Finished
		}
	})
}

// The largest record on 5,000 nodes.
func BenchmarkRead(b *testing.B) {
	for _, rounds := range []int{1, 32} {
		b.Run(fmt.Sprintf("%d rounds on 5000 nodes", rounds), func(b *testing.B) {
			r := read(b, nil)
			for round := range rounds {
				for node := range 5000 {
					r.Finish(ended(fmt.Sprintf("node-%05d", node), round, 0))
				}
			}
			shards := written(nil, r)
			if !maps.Equal(read(b, shards).Finished, r.Finished) {
				b.Fatal("the record has changed")
			}
			for b.Loop() {
				if _, err := Read(shards, len(shards)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
