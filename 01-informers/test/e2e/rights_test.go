package e2e

import (
	. "github.com/onsi/ginkgo/v2"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/shared/expect"
)

var _ = Describe("The operator's rights:", func() {
	It("its roles hold none that it does not use, and lack none that it uses", func(ctx SpecContext) {
		env.ExpectExactRights(ctx, derived, func() {
			foo := create(ctx, env.Namespace(ctx), "web", 1)
			expectAvailable(ctx, foo)
			old := deploymentOf(foo)
			change(ctx, foo, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "renamed" })
			expectAvailable(ctx, foo)
			expect.Gone(ctx, env.Client, old)
		})
	})

	It("it shows its metrics to those who may read them, and to no one else", func(ctx SpecContext) {
		env.ExpectGuardedMetrics(ctx, "foo-metrics-reader",
			"workqueue_adds_total", "rest_client_requests_total", "leader_election_master_status")
	})
})

// derived are rights that no request is named after, and what they are for.
var derived = map[string]string{
	"create apps/deployments":                             "an apply that creates is a patch in the log, and needs both",
	"update samplecontroller.example.com/foos/finalizers": "blockOwnerDeletion in the owner references",
	"patch events.k8s.io/events":                          "an Event that comes again within minutes is counted up",
}
