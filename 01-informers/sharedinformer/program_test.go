package main

import (
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// The whole program, line by line: what it prints is what the chapters quote.
func TestProgram(t *testing.T) {
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred())
	for _, fact := range []struct{ name, line string }{
		{"nothing is asked before the start", "before the start: 0 requests"},
		{"handlers share a watch", "3 handlers, 3 objects: 1 request, a watch that begins with the list"},
		{"a synced cache is no synced handler", "cache: true, quick handler: true, slow handler: false (it has been told of 0 of 3 objects)"},
		{"a slow handler holds up nobody", "the quick one was told of a: added 1, updated 2, updated 3, updated 4"},
		{"a slow handler misses nothing", "the slow one was told of a, later:  added 1, updated 2, updated 3, updated 4"},
		{"handlers share the object", "both were handed the same object in memory: true"},
		{"a resync is local", "told as updates: a, b, c; with a resourceVersion that had changed: 0; requests sent: 0"},
		{"a resync is for those who asked", "told to the handler that asked for none: 0"},
		{"a deletion that was seen", `a: final state known: true, value "4"`},
		{"the cache is stale during a gap", `b was set to "2" and deleted; the cache still has 2 objects`},
		{"a deletion that was missed", `b: final state known: false, the last that the cache saw: value "1"`},
		{"a change that was missed is never told", "all that the handler was ever told of b: added 1, deleted 1"},
		{"a transform", "on the server: 100 kB; in memory: less than 1 kB, without data (0 keys) and managedFields (0 entries)"},
		{"a name has metrics", "processing latency of configmaps, queued items of configmaps, store resource version of configmaps"},
		{"a name is unique", "the name can be had twice: false"},
		{"the end", "A handler added now is refused: true"},
	} {
		t.Run(fact.name, func(t *testing.T) {
			NewWithT(t).Expect(out).To(ContainSubstring(fact.line))
		})
	}
}
