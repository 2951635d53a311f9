package e2e

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestUnusedPermissions(t *testing.T) {
	held := permissionsIn([]rbacv1.PolicyRule{
		{APIGroups: []string{"apps", ""}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs", "jobs/status"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	})
	used := []string{"watch apps/deployments", "create batch/jobs", "delete batch/jobs"}
	derived := map[string]string{"create batch/jobs/status": "said to be used"}
	want := []string{"list /deployments", "watch /deployments", "list /secrets", "get /metrics"}
	if got := unusedPermissions(held, used, derived); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
