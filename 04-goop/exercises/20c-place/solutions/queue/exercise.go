package place

import (
	"cmp"
	"slices"
)

// load is a node with the number of its workers.
type load struct {
	node    string
	workers int
}

// Place returns the node of each worker that is left to do.
func Place(nodes []string, placed map[int]string, done map[int]bool, want int) map[int]string {
	var loads []load
	for _, node := range nodes {
		loads = append(loads, load{node, 0})
	}
	result := map[int]string{}
	var homeless []int
	for worker := range want {
		i := slices.IndexFunc(loads, func(l load) bool { return l.node == placed[worker] })
		if i >= 0 {
			loads[i].workers++
		}
		switch {
		case done[worker]:
		case i >= 0:
			result[worker] = placed[worker]
		default:
			homeless = append(homeless, worker)
		}
	}
	for _, worker := range homeless {
		if len(loads) == 0 {
			break
		}
		slices.SortFunc(loads, func(a, b load) int {
			return cmp.Or(cmp.Compare(a.workers, b.workers), cmp.Compare(a.node, b.node))
		})
		result[worker] = loads[0].node
		loads[0].workers++
	}
	return result
}
