package e2e

import (
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

func TestSummary(t *testing.T) {
	g := NewWithT(t)
	began := time.Unix(1000, 0)
	spec := func(line int, state types.SpecState, from, took time.Duration, texts ...string) types.SpecReport {
		last := len(texts) - 1
		return types.SpecReport{
			ContainerHierarchyTexts: texts[:last], LeafNodeText: texts[last], LeafNodeType: types.NodeTypeIt,
			LeafNodeLocation: types.CodeLocation{FileName: "a_test.go", LineNumber: line},
			State:            state, NumAttempts: 1, StartTime: began.Add(from), EndTime: began.Add(from + took), RunTime: took,
		}
	}
	skipped := spec(4, types.SpecStateSkipped, 0, 0, "Serving", "shows a cow")
	skipped.Failure.Message = "they need containers"
	leftOut := spec(5, types.SpecStateSkipped, 0, 0, "Serving", "what the command line leaves out")
	leftOut.NumAttempts = 0
	serial := spec(9, types.SpecStatePassed, 5*time.Second, 3*time.Second, "The operator", "is restarted")
	serial.IsSerial = true
	setUp := spec(1, types.SpecStatePassed, 0, time.Hour, "set-up")
	setUp.LeafNodeType = types.NodeTypeSynchronizedBeforeSuite

	g.Expect(summary(ginkgo.Report{SpecReports: types.SpecReports{
		serial, skipped, setUp, leftOut,
		spec(3, types.SpecStateTimedout, 0, 4*time.Second, "Serving", "follows the spec"),
		spec(2, types.SpecStatePassed, time.Second, 1500*time.Millisecond, "Serving", "greets"),
	}})).To(Equal(`ok        1.5 s  Serving greets
timedout    4.0 s  Serving follows the spec
ok        3.0 s  The operator is restarted
==> the specs took 8s, one after the other they would have taken 9s, the serial ones 3s
==> 1 specs not run: they need containers
`))
}
