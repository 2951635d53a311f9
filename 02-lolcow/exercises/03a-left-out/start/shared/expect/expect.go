// Package expect has assertions for the tests of all pots.
package expect

import "testing"

// Equal fails the test if both differ.
func Equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, and want %q", got, want)
	}
}
