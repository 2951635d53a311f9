package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/conformance"
	"example.com/workbook/shared/expect"
)

// The scenarios that the tests of internal/conformance run in their own process.
var _ = Describe("The operator, like every implementation,", func() {
	for _, scenario := range conformance.Scenarios() {
		It(scenario.Name, func(ctx SpecContext) {
			scenario.Run(ctx, Default, &conformance.Env{
				Client:        env.Client,
				Namespace:     env.Namespace(ctx),
				Soon:          expect.Eventually,
				SteadyState:   expect.SteadyState,
				Interval:      expect.Interval,
				StalledWithin: stalledWithin,
			})
		})
	}
})
