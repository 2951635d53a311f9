package main

import (
	"testing"

	"example.com/workbook/01-informers/internal/testserver"
)

// It is not parallel, because other tests change the feature gates.
func TestProgram(t *testing.T) { testserver.ExpectOutput(t, program) }
