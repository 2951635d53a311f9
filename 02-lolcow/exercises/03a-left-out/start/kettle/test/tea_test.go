// Package test has the tests of kettle that use the harness.
package test

import (
	"testing"

	"example.com/pots/kettle/brew"
	"example.com/pots/shared/expect"
)

func TestTea(t *testing.T) {
	expect.Equal(t, brew.Tea(2), "tea for 2")
}
