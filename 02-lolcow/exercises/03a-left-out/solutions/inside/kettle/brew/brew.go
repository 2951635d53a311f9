// Package brew makes tea.
package brew

import "fmt"

// Tea returns what is in the pot.
func Tea(cups int) string { return fmt.Sprintf("tea for %d", cups) }
