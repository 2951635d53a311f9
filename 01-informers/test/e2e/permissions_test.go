package e2e

import (
	. "github.com/onsi/ginkgo/v2"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/shared/expect"
)

var _ = Describe("The operator's permissions:", func() {
	It("its roles have none that it does not use, and lack none that it uses", Serial, func(ctx SpecContext) {
		env.ExpectExactPermissions(ctx, derived, func() {
			foo := create(ctx, env.Namespace(ctx), 1)
			expectAvailable(ctx, foo)
			old := deploymentOf(foo)
			change(ctx, foo, func(spec *v1alpha1.FooSpec) { spec.DeploymentName = "renamed" })
			expectAvailable(ctx, foo)
			expect.Gone(ctx, env.Client, old)
		})
	})

	It("it serves metrics only to callers with the permission", Serial, func(ctx SpecContext) {
		env.ExpectGuardedMetrics(ctx, "foo-metrics-reader",
			"workqueue_adds_total", "rest_client_requests_total", "leader_election_master_status")
	})
})

// derived are permissions without a request of their name, and what they are for.
var derived = map[string]string{
	"create apps/deployments":                             "an apply that creates is a patch in the audit log, and needs both",
	"update samplecontroller.example.com/foos/finalizers": "blockOwnerDeletion in the owner references",
	"patch events.k8s.io/events":                          "an Event that is repeated within minutes becomes a series",
}
