package e2e

import (
	"context"
	"fmt"
	"runtime"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/conformance"
	"example.com/workbook/shared/expect"
)

const (
	// atOnce is how many scenarios are under way at a time. They spend most of it waiting, and none minds
	// another.
	atOnce = 5
	// conformanceTimeout is for all of them.
	conformanceTimeout = 10 * time.Minute
)

// What every implementation promises, and the tests of internal/conformance assert in their own process. All
// scenarios begin with the first spec, and each spec waits for its own.
var _ = Describe("The operator", Ordered, ContinueOnFailure, func() {
	runs := map[string]*run{}

	BeforeAll(func(ctx SpecContext) {
		// Longer than this node.
		scenarios, cancel := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(cancel)
		places := make(chan struct{}, atOnce)
		for _, scenario := range conformance.Scenarios() {
			r := &run{scenario: scenario, namespace: env.Namespace(ctx), ended: make(chan struct{})}
			runs[scenario.Name] = r
			go r.begin(scenarios, places)
		}
	})

	for _, scenario := range conformance.Scenarios() {
		It(scenario.Name, func(ctx SpecContext) {
			r := runs[scenario.Name]
			env.Concerns(r.namespace)
			Eventually(ctx, r.ended).WithTimeout(conformanceTimeout).Should(BeClosed())
			Expect(r.failure).To(BeEmpty())
		})
	}
})

// run is one scenario that is under way, or has ended.
type run struct {
	scenario  conformance.Scenario
	namespace string
	// failure is what the scenario failed with, once ended is closed; empty if it did not.
	failure string
	ended   chan struct{}
}

// begin waits for a place and lives through the scenario.
func (r *run) begin(ctx context.Context, places chan struct{}) {
	places <- struct{}{}
	defer func() { <-places; close(r.ended) }()
	g := NewGomega(func(message string, skip ...int) {
		r.failure = fmt.Sprintf("%s\n%s", types.NewCodeLocation(skip[0]+1), message)
		runtime.Goexit()
	})
	r.scenario.Run(ctx, g, &conformance.World{
		Client:        env.Client,
		Namespace:     r.namespace,
		Soon:          expect.Eventually,
		AtRest:        expect.AtRest,
		StalledWithin: stalledWithin,
	})
}
