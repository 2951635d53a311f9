package page

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
	"example.com/workbook/shared/exercise/kube"
)

// sentinel is a resource that only the check asks about.
const sentinel = "sentinels"

// account is who the operator's requests are from.
func (c *cluster) account() string { return "system:serviceaccount:" + c.namespace + ":page-operator" }

// role reads the rules in role.yaml.
func (c *cluster) role() []rbacv1.PolicyRule {
	content, err := os.ReadFile(filepath.Join(c.work.Dir, "role.yaml"))
	if err != nil {
		c.b.Fatalf("there is no role.yaml in your folder: %v", err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(content, &role); err != nil {
		c.b.Fatalf("role.yaml: %v", err)
	}
	if role.Kind != "ClusterRole" {
		c.b.Fatalf("role.yaml has a %s, and should have a ClusterRole", role.Kind)
	}
	return role.Rules
}

// bind gives the operator its permissions, in this namespace, and waits until the API server uses them.
func (c *cluster) bind() {
	name := "page-operator-" + c.namespace
	rules := append(c.role(), rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{sentinel}, Verbs: []string{"get"}})
	c.must("creating a ClusterRole", c.client.Create(c.b.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}))
	c.must("creating a RoleBinding", c.client.Create(c.b.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: c.account()}},
	}))
	kube.WaitAllowed(c.b, c.account(), authorizationv1.ResourceAttributes{
		Namespace: c.namespace, Verb: "get", Group: "example.com", Resource: sentinel,
	})
}

// needs are the verbs that an operator may need, whichever way it works.
var needs = map[string][]string{
	"pages." + pages.SchemeGroupVersion.Group:            {"get", "list", "watch", "update", "patch"},
	"pages/status." + pages.SchemeGroupVersion.Group:     {"get", "update", "patch"},
	"pages/finalizers." + pages.SchemeGroupVersion.Group: {"update", "patch"},
	"configmaps.":          {"get", "list", "watch", "create", "update", "patch"},
	"services.":            {"get", "list", "watch", "create", "update", "patch"},
	"deployments.apps":     {"get", "list", "watch", "create", "update", "patch"},
	"events.":              {"create", "update", "patch"},
	"events.events.k8s.io": {"create", "update", "patch"},
}

// excess says what the rules permit that no operator of Pages needs, or returns an empty string.
func excess(rules []rbacv1.PolicyRule) string {
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			return fmt.Sprintf("role.yaml permits %v, which the operator does not need", rule.NonResourceURLs)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if !slices.Contains(needs[resource+"."+group], verb) {
						return fmt.Sprintf("role.yaml permits %s of %s in the group %q, which the operator does not need", verb, resource, group)
					}
				}
			}
		}
	}
	return ""
}

// blocks says whether an owner reference that blocks the deletion of a Page is permitted, as an admission plugin asks.
func blocks(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, pages.SchemeGroupVersion.Group) && slices.Contains(rule.Resources, "pages/finalizers") &&
			slices.Contains(rule.Verbs, "update")
	})
}
