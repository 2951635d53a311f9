package faults

import (
	"flag"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) {
	// These tests wait far more than they work. The command line still has the last word.
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	SetDefaultEventuallyTimeout(soon)
	testserver.Main(m)
}
