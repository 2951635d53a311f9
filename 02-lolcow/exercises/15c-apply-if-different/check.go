// Package applyifdifferent is a step of Part 0. What it asks for is in package suite.
package applyifdifferent

import (
	"example.com/workbook/02-lolcow/exercises/part0"
	"example.com/workbook/shared/exercise/check"
)

// Check checks a project for this step and those before it.
func Check(t *check.T, work check.Work[check.Files]) {
	part0.Check(t, work, "15c")
}
