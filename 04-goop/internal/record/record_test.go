package record

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// failer is the common interface of tests, benchmarks and properties.
type failer interface {
	Helper()
	Fatal(...any)
}

// read reads valid shards.
func read(t failer, shards map[int]string) *Record {
	t.Helper()
	r, err := Read(shards, len(shards))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// written returns the shards with the changes of a record.
func written(shards map[int]string, r *Record) map[int]string {
	after := maps.Clone(shards)
	if after == nil {
		after = map[int]string{}
	}
	for _, shard := range r.Changed() {
		after[shard.Number] = shard.Text
	}
	return after
}

// ended returns the result of a worker that had one try.
func ended(node string, round int, exitCode int32) Finish {
	return Finish{Place: plan.Place{Node: node, Round: round}, ExitCode: exitCode, Tries: 1}
}

func TestRecordIsText(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := read(t, nil)
	g.Expect(r.Changed()).To(BeEmpty())
	r.Start(noon.Add(700 * time.Millisecond))
	r.Begin("a")
	r.Begin("b.example.com")
	r.Finish(ended("a", 0, 0))
	r.Finish(Finish{Place: plan.Place{Node: "a", Round: 31}, ExitCode: 137, Tries: 4, Output: "no \"room\"\n\x00\xff\u2028é\n"})
	r.Finish(Finish{Place: plan.Place{Node: "c"}, ExitCode: 0, Tries: 2, Output: "of a success nothing is kept"})
	r.Suspend()
	r.Start(noon.Add(time.Hour))
	g.Expect(r.Changed()).To(Equal([]Shard{{Number: 0, Text: `s 2026-01-02T12:00:00Z
b a
b b.example.com
f a 0 0 1
f a 31 137 4 "no \"room\"\n\x00�\u2028é\n"
f c 0 0 2
s -
s 2026-01-02T13:00:00Z
`}}))

	r = read(t, written(nil, r))
	g.Expect(r.Changed()).To(BeEmpty())
	g.Expect(r.Started).To(Equal(noon.Add(time.Hour)))
	g.Expect(r.Begun).To(Equal(map[string]bool{"a": true, "b.example.com": true, "c": true}))
	g.Expect(r.Finished).To(Equal(map[plan.Place]bool{{Node: "a"}: true, {Node: "a", Round: 31}: true, {Node: "c"}: true}))
	g.Expect([]int32{r.Succeeded, r.Failed, r.ExitCode}).To(Equal([]int32{2, 1, 137}))
	g.Expect(r.Failures).To(Equal([]v1alpha1.Failure{{Node: "a", Round: 31, ExitCode: 137, Output: "no \"room\"\n\x00\uFFFD\u2028é\n"}}))
}

// A reconciliation adds everything that it observes, whether it is recorded or not.
func TestWhatIsRecordedIsNotRecordedAgain(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	observe := func(r *Record) {
		r.Start(noon)
		r.Begin("a")
		r.Finish(ended("a", 0, 1))
		r.Finish(ended("b", 0, 0))
		r.Begin("b")
	}
	r := read(t, nil)
	observe(r)
	shards := written(nil, r)
	g.Expect(shards).To(Equal(map[int]string{0: "s 2026-01-02T12:00:00Z\nb a\nf a 0 1 1\nf b 0 0 1\n"}), "a finished worker has begun")
	observe(r)
	g.Expect(written(nil, r)).To(Equal(shards))
	r = read(t, shards)
	observe(r)
	r.Finish(ended("a", 0, 0))
	g.Expect(r.Changed()).To(BeEmpty())
	g.Expect([]int32{r.Succeeded, r.Failed, r.ExitCode}).To(Equal([]int32{1, 1, 1}), "the first result counts")
}

func TestSuspend(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := read(t, nil)
	r.Suspend()
	g.Expect(r.Changed()).To(BeEmpty(), "it was not started")
	r.Start(noon)
	r.Suspend()
	r.Suspend()
	g.Expect(r.Started).To(BeZero())
	r = read(t, written(nil, r))
	g.Expect(r.Started).To(BeZero())
	r.Suspend()
	g.Expect(r.Changed()).To(BeEmpty())
	r.Start(noon)
	g.Expect(r.Started).To(Equal(noon))
	g.Expect(r.Changed()).To(Equal([]Shard{{Text: "s 2026-01-02T12:00:00Z\ns -\ns 2026-01-02T12:00:00Z\n"}}))
}

func TestOnlyTheFirstFailuresAreKept(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := read(t, nil)
	var want []v1alpha1.Failure
	for i := range v1alpha1.MaxFailures + 5 {
		f := ended(fmt.Sprintf("node-%02d", 99-i), 0, int32(i+1))
		f.Output = fmt.Sprintf("output %d", i)
		r.Finish(f)
		r.Finish(ended(fmt.Sprintf("good-%02d", i), 0, 0))
		if i < v1alpha1.MaxFailures {
			want = append(want, v1alpha1.Failure{Node: f.Place.Node, ExitCode: f.ExitCode, Output: f.Output})
		}
	}
	for _, r := range []*Record{r, read(t, written(nil, r))} {
		g.Expect(r.Failures).To(Equal(want), "in the order in which they were recorded")
		g.Expect([]int32{r.Succeeded, r.Failed, r.ExitCode}).To(Equal([]int32{25, 25, 25}))
	}
	text := r.Changed()[0].Text
	g.Expect(text).To(ContainSubstring(`f node-80 0 20 1 "output 19"` + "\n"))
	g.Expect(text).To(ContainSubstring("f node-79 0 21 1\n"), "the output of the others is not kept")
}

func TestShards(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	line := "f node-00000000 0 0 1\n"
	inOne := ShardSize / len(line)
	finish := func(r *Record, from, to int) {
		for i := from; i < to; i++ {
			r.Finish(ended(fmt.Sprintf("node-%08d", i), 0, 0))
		}
	}
	r := read(t, nil)
	finish(r, 0, inOne)
	g.Expect(r.Changed()).To(HaveLen(1))
	shards := written(nil, r)
	g.Expect(len(shards[0])).To(And(BeNumerically("<=", ShardSize), BeNumerically(">", ShardSize-len(line))), "it is full")

	// One more line creates another shard. The first is not written again.
	r = read(t, shards)
	finish(r, 0, inOne+1)
	g.Expect(r.Changed()).To(Equal([]Shard{{Number: 1, Text: fmt.Sprintf("f node-%08d 0 0 1\n", inOne)}}))

	// If several lines do not fit, several shards change. Nothing is lost if only the first of them is written.
	r = read(t, map[int]string{0: shards[0][:10*len(line)]})
	finish(r, 10, 3*inOne)
	changed := r.Changed()
	g.Expect(changed).To(HaveLen(3))
	g.Expect(changed[0]).To(Equal(Shard{Number: 0, Text: shards[0]}))
	r = read(t, map[int]string{0: changed[0].Text})
	g.Expect(r.Finished).To(HaveLen(inOne))
	finish(r, 0, 3*inOne)
	g.Expect(r.Changed()).To(Equal(changed[1:]))

	// A line that fills the last byte fits. A longer line goes whole into the next shard.
	fits := strings.Repeat("x", ShardSize-len(shards[0])-len("b \n"))
	r = read(t, shards)
	r.Begin(fits)
	g.Expect(r.Changed()).To(Equal([]Shard{{Number: 0, Text: shards[0] + "b " + fits + "\n"}}))
	r = read(t, shards)
	r.Begin(fits + "x")
	g.Expect(r.Changed()).To(Equal([]Shard{{Number: 1, Text: "b " + fits + "x\n"}}))
}

// The sizes are printed, and the limits are close to them, so that the test shows growth.
func TestSizeOfEntries(t *testing.T) {
	t.Parallel()
	const nodes = 5000
	for _, test := range []struct {
		what            string
		rounds          int
		exitCode        int32
		entry, shardsAt int
	}{
		{"one worker on each node", 1, 0, 19, 1},
		{"one worker on each node, and all fail", 1, 137, 21, 1},
		{"32 workers on each node", 32, 0, 20, 13},
	} {
		r, entries := read(t, nil), 0
		for round := range test.rounds {
			for node := range nodes {
				r.Finish(ended(fmt.Sprintf("node-%05d", node), round, test.exitCode))
				entries++
			}
		}
		size, shards := 0, r.Changed()
		for _, shard := range shards {
			size += len(shard.Text)
		}
		t.Logf("%d nodes, %s: %d entries of %d bytes are %d KiB in %d shards", nodes, test.what, entries, size/entries, size>>10, len(shards))
		if size/entries > test.entry || len(shards) > test.shardsAt {
			t.Errorf("%s: an entry has %d bytes, and there are %d shards: more than %d and %d",
				test.what, size/entries, len(shards), test.entry, test.shardsAt)
		}
	}
}

// The end of the cleanup on a node is recorded once.
func TestClean(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := read(t, map[int]string{0: "b a\n"})
	r.Clean("a", 0, 1)
	r.Clean("a", 7, 1)
	r.Clean("b", 3, 4)
	g.Expect(r.Changed()).To(Equal([]Shard{{Text: "b a\nc a 0 1\nc b 3 4\n"}}))
	r = read(t, map[int]string{0: "b a\nc a 0 1\nc b 3 4\nc b 0 1\n"})
	g.Expect(r.Cleaned).To(Equal(map[string]int32{"a": 0, "b": 3}))
	g.Expect(r.Begun).To(Equal(map[string]bool{"a": true, "b": true}))
}

// Read also returns the valid part of a damaged record. Entries that are added do not change its lines.
func TestReadReturnsTheValidPart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r, err := Read(map[int]string{1: "b a\nnonsense\nf b 0 0 1\nb c"}, 2)
	g.Expect(err).To(MatchError(HavePrefix(`shard 0 has no "record"`)), "the first error")
	g.Expect(r.Begun).To(Equal(map[string]bool{"a": true, "b": true}))
	g.Expect(r.Changed()).To(BeEmpty())
	r.Begin("d")
	g.Expect(r.Changed()).To(Equal([]Shard{{Number: 2, Text: "b d\n"}}), "its last line has no end")
	r, err = Read(map[int]string{0: "b a\n"}, 2)
	g.Expect(err).To(MatchError(HavePrefix(`shard 1 has no "record"`)))
	r.Begin("d")
	g.Expect(r.Changed()).To(Equal([]Shard{{Number: 2, Text: "b d\n"}}), "the last shard is missing")
	r, err = Read(map[int]string{1: "b a\n"}, 2)
	g.Expect(err).To(MatchError(HavePrefix(`shard 0 has no "record"`)))
	r.Begin("d")
	g.Expect(r.Changed()).To(Equal([]Shard{{Number: 1, Text: "b a\nb d\n"}}))
}

func TestNamesNodes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"": false, "s 2026-01-02T12:00:00Z\ns -\n": false, "b a\n": true, "f a 0 0 1\n": true, "c a 0 1\n": true, "nonsense": true} {
		NewWithT(t).Expect(NamesNodes(text)).To(Equal(want), text)
	}
}
