package place

import "slices"

// Place returns the node of each worker that is left to do.
func Place(nodes []string, placed map[int]string, done map[int]bool, want int) map[int]string {
	nodes = slices.Sorted(slices.Values(nodes))
	result := map[int]string{}
	for worker := range want {
		if len(nodes) > 0 && !done[worker] {
			result[worker] = nodes[worker%len(nodes)]
		}
	}
	return result
}
