package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/conformance"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// atOnce is how many scenarios are under way at a time.
const atOnce = 5

// What every implementation promises, and the tests of internal/conformance assert in their own process.
var _ = Describe("The operator,", func() {
	env.SideBySide("like every implementation,", atOnce, scenarios()...)
})

func scenarios() []e2e.Scenario {
	var all []e2e.Scenario
	for _, scenario := range conformance.Scenarios() {
		all = append(all, e2e.Scenario{Name: scenario.Name, Run: func(ctx context.Context, g Gomega, namespace string) {
			scenario.Run(ctx, g, &conformance.World{
				Client:        env.Client,
				Namespace:     namespace,
				Soon:          expect.Eventually,
				AtRest:        expect.AtRest,
				StalledWithin: stalledWithin,
			})
		}})
	}
	return all
}
