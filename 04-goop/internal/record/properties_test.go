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

// facts are what a record says, without how it is written.
func facts(r *Record) Record {
	said := *r
	said.shards, said.changed = nil, 0
	return said
}

// drawEntry adds some entry to a record. It may be one that is there.
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
	default:
		r.Finish(Finish{
			Place:    plan.Place{Node: node.Draw(t, "node"), Round: rapid.IntRange(0, 31).Draw(t, "round")},
			ExitCode: rapid.SampledFrom([]int32{0, 0, 1, 137, 255}).Draw(t, "exit"),
			Tries:    rapid.Int32Range(1, 1001).Draw(t, "tries"),
			Output:   rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "output"),
		})
	}
}

// Whatever is added, and whenever it is written and read again: the record says the same, and what was written stays.
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
				t.Fatalf("it says %+v, and said %+v", facts(again), facts(r))
			}
			r, shards = again, after
		}
	})
}

// An edit anywhere in a record is either refused, or leaves a record that can be written and read.
func TestEveryEditIsRefusedOrUnderstood(t *testing.T) {
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
		edited, err := Read(map[int]string{0: text})
		if err != nil {
			return
		}
		drawEntry(t, edited)
		after := written(map[int]string{0: text}, edited)
		if !strings.HasPrefix(after[0], text) {
			t.Fatalf("of %q is made %q", text, after[0])
		}
		again, err := Read(after)
		if err != nil || !reflect.DeepEqual(facts(again), facts(edited)) {
			t.Fatalf("it says %+v, and said %+v: %v", again, facts(edited), err)
		}
	})
}

// The largest record that there can be on 5,000 nodes.
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
				b.Fatal("it says something else")
			}
			for b.Loop() {
				if _, err := Read(shards); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
