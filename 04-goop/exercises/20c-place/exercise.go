//go:build start

package place

// Place returns the node of each worker that is left to do.
func Place(nodes []string, placed map[int]string, done map[int]bool, want int) map[int]string {
	result := map[int]string{}
	// TODO: what stays where it is, and what needs a place?
	return result
}
