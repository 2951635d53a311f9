package main

import (
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/testserver"
)

// The program takes its seconds from the bubble's clock, so this takes none.
func TestProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		out, err := testserver.Lesson(t, program)
		g.Expect(err).NotTo(HaveOccurred())
		for _, line := range []string{
			"one key added 100 times before a worker comes: 1 waiting, 1 pass",
			"passes in all:                                 2",
			"at most 1 worker on a key, no key forgotten: true",
			"[5ms 10ms 20ms 40ms 80ms 160ms]",
			"the 100th 0s, the 101st 100ms, the 200th 10s",
			"neither:               failures remembered 4, next back-off 80ms,  added again it is worked on: false  ShutDownWithDrain returns: false",
			"Done said twice for one Get: workers with that key at once:     2",
			"late after 200 ms, early after 50 ms, now after 0:         [now early late]",
			"ShutDownWithDrain: while a worker has a key it has returned: false",
			"workqueue_adds_total                         3",
			"a queue without a name: 0 metrics",
			"shop/hopeless  passes: 6, given up: true  failures remembered: 0",
			"then every key once more, as a list brings it: 100 of 100",
		} {
			g.Expect(out).To(ContainSubstring(line))
		}
	})
}
