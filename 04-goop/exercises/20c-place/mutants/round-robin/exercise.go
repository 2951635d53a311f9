package place

import "slices"

// Place returns the node of each worker that is left to do.
func Place(nodes []string, placed map[int]string, done map[int]bool, want int) map[int]string {
	nodes = slices.Sorted(slices.Values(nodes))
	count := map[string]int{}
	for _, node := range nodes {
		count[node] = 0
	}
	result := map[int]string{}
	for worker, node := range placed {
		if _, there := count[node]; !there || worker >= want {
			continue
		}
		count[node]++
		if !done[worker] {
			result[worker] = node
		}
	}
	if len(nodes) == 0 {
		return result
	}
	next := 0
	for worker := range want {
		if _, stays := result[worker]; stays || done[worker] {
			continue
		}
		result[worker] = nodes[next%len(nodes)]
		next++
	}
	return result
}
