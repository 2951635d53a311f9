// Package faults shows what client-go and both implementations do while an API server, or the connection to it, fails.
package faults

import (
	"flag"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) {
	// These tests wait most of the time. The flag on the command line has precedence.
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	SetDefaultEventuallyTimeout(timeout)
	testserver.Main(m)
}
