package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/workbook/03-flux/test/standin/internal/wire"
	"example.com/workbook/03-flux/test/standin/internal/words"
)

// share is how many tasks of a job a rank runs.
type share struct{ rank, tasks int }

// usable reports whether a rank may run tasks: it is online, and has the declared cores, unless they need not be
// verified.
func (l *leader) usable(rank int) bool {
	m := l.members[rank]
	return m != nil && m.online && (!l.config.Verify || m.cores >= l.cores(rank))
}

// free is the number of cores of a rank that no job uses.
func (l *leader) free(rank int) int {
	if !l.usable(rank) {
		return 0
	}
	return l.cores(rank) - l.members[rank].used
}

// feasible fails if a job could not run even if every rank were online and idle.
func (l *leader) feasible(work *wire.Work) error {
	if _, found := place(work, l.size(), l.cores); found {
		return nil
	}
	if work.Nodes == 0 {
		total := 0
		for rank := range l.size() {
			total += l.cores(rank)
		}
		return words.Errorf("unsatisfiable request: need %d slot(s) of 1 core(s), only %d such slot(s) available (total cores: %d)",
			work.Tasks, total, total)
	}
	each, eligible := perNode(work), 0
	for rank := range l.size() {
		if l.cores(rank) >= each {
			eligible++
		}
	}
	return words.Errorf("unsatisfiable request: need %d node(s) with %d cores each, only %d eligible", work.Nodes, each, eligible)
}

// perNode is how many cores each rank of a job must have: one for each task.
func perNode(work *wire.Work) int { return (work.Tasks + work.Nodes - 1) / work.Nodes }

// place distributes the tasks of a job over the first ranks that have the cores.
func place(work *wire.Work, size int, cores func(rank int) int) (shares []share, found bool) {
	left := work.Tasks
	for rank := range size {
		n := cores(rank)
		switch {
		case work.Nodes == 0:
			n = min(n, left)
		case n < perNode(work) || len(shares) == work.Nodes:
			n = 0
		default:
			// The first ranks get one task more if the tasks cannot be distributed evenly.
			nodes := work.Nodes - len(shares)
			n = (left + nodes - 1) / nodes
		}
		if n > 0 {
			shares = append(shares, share{rank, n})
			left -= n
		}
	}
	return shares, left == 0
}

// schedule starts the waiting jobs in the order of their submission, until one of them cannot start yet.
func (l *leader) schedule() {
	for len(l.pending) > 0 {
		next := l.pending[0]
		shares, found := place(next.work, l.size(), l.free)
		if !found {
			return
		}
		l.pending = l.pending[1:]
		next.start(l, shares)
	}
}

// table is the output of `flux resource list`.
func (l *leader) table() string {
	states := []string{"free", "allocated", "down"}
	ranks, cores := map[string][]int{}, map[string]int{}
	for rank := range l.size() {
		s := "down"
		switch {
		case l.usable(rank) && l.members[rank].used == 0:
			s = "free"
		case l.usable(rank):
			s = "allocated"
		}
		ranks[s] = append(ranks[s], rank)
		cores[s] += l.cores(rank)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%10s %6s %6s %5s %s\n", "STATE", "NNODES", "NCORES", "NGPUS", "NODELIST")
	for _, s := range states {
		fmt.Fprintf(&out, "%10s %6d %6d %5d %s\n", s, len(ranks[s]), cores[s], 0, l.hosts(ranks[s]...))
	}
	return out.String()
}

// ids are the existing jobs, in the order of their submission.
func (l *leader) ids() []int { return slices.Sorted(maps.Keys(l.jobs)) }
