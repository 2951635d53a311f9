// Package place is exercise 20c: a pure function that places workers on nodes.
package place

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry func(nodes []string, placed map[int]string, done map[int]bool, want int) map[int]string

// cases is how many clusters are generated. The first ones are small, so that the first that fails is.
const cases = 1000

// Check asserts the properties of the results for generated clusters.
func Check(t *check.T, work check.Work[Entry]) {
	if !complete(t, work.Entry) {
		return
	}
	nothingElse(t, work.Entry)
	stable(t, work.Entry)
	t.Behaviour("what needs a place goes to the nodes with the fewest workers", func(b *check.B) {
		each(b, work.Entry, func(c cluster, result map[int]string) string {
			if len(c.done) > 0 {
				return ""
			}
			return uneven(c, result)
		})
	})
	t.Behaviour("workers that have finished count, too", func(b *check.B) {
		each(b, work.Entry, uneven)
	})
	pure(t, work.Entry)
}

// complete checks that all work has a place.
func complete(t *check.T, entry Entry) bool {
	return t.Behaviour("each worker that is left to do has a place", func(b *check.B) {
		each(b, entry, func(c cluster, result map[int]string) string {
			for worker := range c.want {
				node, found := result[worker]
				switch {
				case c.done[worker] || len(c.nodes) == 0:
				case !found:
					return fmt.Sprintf("worker %d has no place", worker)
				case !slices.Contains(c.nodes, node):
					return fmt.Sprintf("worker %d is on %q, which is not there", worker, node)
				}
			}
			return ""
		})
	})
}

func nothingElse(t *check.T, entry Entry) {
	t.Behaviour("nothing else has a place", func(b *check.B) {
		each(b, entry, func(c cluster, result map[int]string) string {
			for _, worker := range slices.Sorted(maps.Keys(result)) {
				switch {
				case worker < 0 || worker >= c.want:
					return fmt.Sprintf("worker %d has a place, and %d workers are wanted", worker, c.want)
				case len(c.nodes) == 0:
					return fmt.Sprintf("worker %d is on %q, and there are no nodes", worker, result[worker])
				}
			}
			return ""
		})
	})
}

// stable checks that what has a place, or needs none, is left alone.
func stable(t *check.T, entry Entry) {
	again := func(c cluster, result map[int]string, known bool) string {
		for worker := range c.want {
			_, found := result[worker]
			if _, was := c.placed[worker]; found && c.done[worker] && was == known {
				return fmt.Sprintf("worker %d has finished, and is placed again", worker)
			}
		}
		return ""
	}
	t.Behaviour("what has finished is not placed again, also if its node is gone", func(b *check.B) {
		each(b, entry, func(c cluster, result map[int]string) string { return again(c, result, true) })
	})
	t.Behaviour("nor is it if its place is not known", func(b *check.B) {
		each(b, entry, func(c cluster, result map[int]string) string { return again(c, result, false) })
	})
	t.Behaviour("a worker stays where it is as long as its node is there", func(b *check.B) {
		each(b, entry, func(c cluster, result map[int]string) string {
			for worker := range c.want {
				if before := c.placed[worker]; slices.Contains(c.nodes, before) && !c.done[worker] && result[worker] != before {
					return fmt.Sprintf("worker %d was on %q and is on %q", worker, before, result[worker])
				}
			}
			return ""
		})
	})
	t.Behaviour("a node that joins moves nothing", func(b *check.B) {
		each(b, entry, func(c cluster, result map[int]string) string {
			if len(c.nodes) == 0 {
				return ""
			}
			more := cluster{nodes: append(slices.Clone(c.nodes), "A"), placed: maps.Clone(c.placed), done: c.done, want: c.want}
			maps.Copy(more.placed, result)
			if again := more.place(entry); !maps.Equal(result, again) {
				return fmt.Sprintf("the workers were on %v, and when the node A has joined they are on %v", result, again)
			}
			return ""
		})
	})
}

// uneven says which node got a worker and has more than one more than another, counting those that have finished.
func uneven(c cluster, result map[int]string) string {
	counts := map[string]int{}
	for _, node := range c.nodes {
		counts[node] = 0
	}
	placed := maps.Clone(c.placed)
	maps.Copy(placed, result)
	for worker, node := range placed {
		if _, there := counts[node]; there && worker < c.want {
			counts[node]++
		}
	}
	for _, worker := range slices.Sorted(maps.Keys(result)) {
		node := result[worker]
		for _, other := range slices.Sorted(maps.Keys(counts)) {
			if c.placed[worker] != node && counts[node] > counts[other]+1 {
				return fmt.Sprintf("worker %d got a place on %q, which has %d workers now, and %q has %d",
					worker, node, counts[node], other, counts[other])
			}
		}
	}
	return ""
}

// pure checks that the function depends on its arguments alone, and leaves them as they are.
func pure(t *check.T, entry Entry) {
	t.Behaviour("the same arguments have the same result, in whatever order the nodes are", func(b *check.B) {
		each(b, entry, func(c cluster, result map[int]string) string {
			for range 3 {
				slices.Reverse(c.nodes)
				if again := c.place(entry); !maps.Equal(result, again) {
					b.Event("%v led to %v, and then to %v", c, result, again)
					b.Fatalf("the same cluster led to two results")
				}
			}
			return ""
		})
	})
	t.Behaviour("the arguments are not changed, and may be nil", func(b *check.B) {
		for n := range cases {
			c, before := generate(n), generate(n)
			entry(c.nodes, c.placed, c.done, c.want)
			if !slices.Equal(c.nodes, before.nodes) || !maps.Equal(c.placed, before.placed) || !maps.Equal(c.done, before.done) {
				b.Fatalf("%v\nbecame\n%v", before, c)
			}
		}
		b.Event("nothing was placed yet, and no worker has finished: both maps are nil")
		if result := entry([]string{"a"}, nil, nil, 1); result[0] != "a" {
			b.Fatalf("the one worker is on %q, and the node is a", result[0])
		}
	})
}

// cluster is what Place is called with.
type cluster struct {
	nodes  []string
	placed map[int]string
	done   map[int]bool
	want   int
}

func (c cluster) String() string {
	return fmt.Sprintf("nodes %v, placed %v, done %v, want %d", c.nodes, c.placed, slices.Sorted(maps.Keys(c.done)), c.want)
}

// place calls the reader's function with a copy: whether it changes that is a behaviour of its own.
func (c cluster) place(entry Entry) map[int]string {
	return entry(slices.Clone(c.nodes), maps.Clone(c.placed), maps.Clone(c.done), c.want)
}

// each calls the function for each cluster. The first text that problem returns ends the behaviour.
func each(b *check.B, entry Entry, problem func(c cluster, result map[int]string) string) {
	for n := range cases {
		c := generate(n)
		result := c.place(entry)
		if text := problem(c, result); text != "" {
			b.Fatalf("%v: %s", c, text)
		}
	}
}

// generate returns the n-th cluster. Each n has the same cluster in each run.
func generate(n int) cluster {
	random := rand.New(rand.NewPCG(20, uint64(n)))
	size := 1 + n*7/cases
	c := cluster{placed: map[int]string{}, done: map[int]bool{}, want: random.IntN(2 * size)}
	names := []string{"f", "b", "e", "c", "a", "d", "g"}[:size]
	for _, name := range names {
		if random.IntN(4) > 0 {
			c.nodes = append(c.nodes, name)
		}
	}
	for worker := range 2 * size {
		if random.IntN(2) == 0 {
			c.placed[worker] = names[random.IntN(size)]
			c.done[worker] = random.IntN(3) == 0
		}
	}
	maps.DeleteFunc(c.done, func(_ int, done bool) bool { return !done })
	if n%10 == 9 {
		c.forgetOne()
	}
	return c
}

// forgetOne removes the place of one worker that has finished.
func (c cluster) forgetOne() {
	for _, worker := range slices.Sorted(maps.Keys(c.done)) {
		if worker < c.want {
			delete(c.placed, worker)
			return
		}
	}
}
