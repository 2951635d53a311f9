package main

import (
	"testing"
	"testing/synctest"

	"example.com/workbook/01-informers/internal/lesson/lessontest"
)

// In a bubble the delays of the program take no time.
func TestProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { lessontest.ExpectOutput(t, program) })
}
