package main

import (
	"os"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/testserver"
)

// The durations of part 4 differ from run to run.
func TestProgram(t *testing.T) {
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred())
	want, err := os.ReadFile("testdata/output.txt")
	g.Expect(err).NotTo(HaveOccurred())
	measured := regexp.MustCompile("measured here: .*")
	g.Expect(measured.ReplaceAllString(out, "measured here:")).To(Equal(measured.ReplaceAllString(string(want), "measured here:")))
}
