package suite

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// permission is one verb on one resource.
type permission struct{ group, resource, verb string }

func (p permission) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s.%s", p.verb, p.resource, p.group), ".")
}

// permissions are the behaviours of step 13a. The manager runs as the operator's ServiceAccount, with the rules of
// config/rbac/role.yaml and no other.
func (s *suite) permissions() {
	var used sets.Set[permission]
	var owned bool
	s.reconciles("the operator does its work with the role in config/rbac/role.yaml", func(e *env) {
		e.impersonate(e.rules())
		m := e.start()
		e.work()
		m.stop()
		e.expectAllowed()
		used, owned = e.used()
	})
	if s.failed {
		return
	}
	s.behaviour("the role allows nothing that the operator does not do", func(b *check.B) {
		rules := s.rules(b)
		var unused []string
		for _, one := range expand(rules) {
			if strings.Contains(one.String(), "*") {
				b.Fatalf("the role allows %s: a role without * says what the operator does", one)
			}
			if !used.Has(one) && !derived(one, owned) {
				unused = append(unused, one.String())
			}
		}
		if len(unused) > 0 {
			slices.Sort(unused)
			b.Fatalf("the role allows what the operator never did: %s. If no marker asks for it: scripts/my-lolcow.sh generate", strings.Join(unused, ", "))
		}
	})
}

// work is what users do with Lolcows, and what the operator has to do then.
func (e *env) work() {
	spec := fields{"greeting": "Moo", "port": int64(firstPort)}
	// The reader may be further than the step: what finalizes a Lolcow needs permissions, too.
	hasRecord := fieldOf(e.operator, "DNS").IsValid()
	if hasRecord {
		spec["hostname"] = firstHost
	}
	e.create("cow", spec)
	e.await("the Deployment has the greeting", func() bool { return len(e.deployments()) == 1 && len(e.services()) == 1 })
	e.await("the status has the condition Ready", func() bool { return e.condition("cow", "Ready").Type != "" })
	e.rollOut(e.deployment("Moo"))
	e.change("cow", fields{"greeting": "Baa", "port": int64(secondPort)})
	e.await("the Deployment has the new greeting", func() bool {
		return slices.ContainsFunc(e.deployments(), func(d deployment) bool { return says(d.Spec.Template, "Baa") })
	})
	e.await("the Service has the new port", func() bool {
		ports := e.service().Spec.Ports
		return len(ports) == 1 && ports[0].NodePort == secondPort
	})
	e.await("the status speaks of the new spec", func() bool {
		return e.condition("cow", "Ready").ObservedGeneration == e.lolcow("cow").GetGeneration()
	})
	if hasRecord {
		e.delete("cow", metav1.DeletePropagationBackground)
		e.await("the Lolcow is deleted, with its record", func() bool { return e.finalizers("cow") == nil && len(e.dns.hostnames()) == 0 })
	}
}

// await waits for something that the operator has to do, and ends as soon as a request of it was forbidden.
func (e *env) await(what string, done func() bool) {
	e.Eventually(patience, func() string {
		e.expectAllowed()
		if done() {
			return ""
		}
		return "this does not come: " + what
	})
}

// expectAllowed asserts that no request was forbidden.
func (e *env) expectAllowed() {
	for _, one := range e.wire.from(0) {
		if one.code == http.StatusForbidden {
			p := permission{one.group, one.resource, one.verb}
			e.Fatalf("the role does not allow the operator to %s%s", p, elsewhere(p, expand(e.rules())))
		}
	}
}

// elsewhere says that a permission is there in another group, that it is there and not enough, or how it gets there.
func elsewhere(p permission, all []permission) string {
	for _, one := range all {
		switch {
		case one == p && slices.Contains(all, permission{lolcowKind.Group, "lolcows/finalizers", "update"}):
			return "; it has that, and to change the owner references of what exists, it needs delete besides"
		case one == p:
			return "; it has that, and an owner reference with blockOwnerDeletion needs update lolcows/finalizers.my.domain besides"
		}
		if one.resource == p.resource && one.verb == p.verb && one.group != p.group {
			return fmt.Sprintf("; what it allows is to %s, which is another group", one)
		}
	}
	return ". If a marker asks for it: scripts/my-lolcow.sh generate"
}

// rules are those of the ClusterRole that controller-gen has written.
func (e *env) rules() []rbacv1.PolicyRule { return e.suite.rules(e.B) }

func (s *suite) rules(b *check.B) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for part := range strings.SplitSeq(string(s.read(b, "config/rbac")["config/rbac/role.yaml"]), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(part), &role); err != nil {
			b.Fatalf("config/rbac/role.yaml: %v", err)
		}
		if role.Kind != "ClusterRole" && len(role.Rules) > 0 {
			b.Fatalf("config/rbac/role.yaml has a %s of one namespace: Lolcows may be in each one, so the operator needs a ClusterRole", role.Kind)
		}
		rules = append(rules, role.Rules...)
	}
	if len(rules) == 0 {
		b.Fatalf("config/rbac/role.yaml has no rules")
	}
	return rules
}

// expand returns each permission of the rules.
func expand(rules []rbacv1.PolicyRule) []permission {
	var all []permission
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, permission{group, resource, verb})
				}
			}
		}
	}
	return all
}

// used returns the permissions that the operator's requests needed, and whether its dependents have owners.
func (e *env) used() (sets.Set[permission], bool) {
	used := sets.New[permission]()
	for _, one := range e.wire.from(0) {
		used.Insert(permission{one.group, one.resource, one.verb})
		// The cache lists and watches, or gets the list as the beginning of the watch: which of them is client-go's choice.
		if one.verb == "list" || one.verb == "watch" {
			used.Insert(permission{one.group, one.resource, "list"}, permission{one.group, one.resource, "watch"})
		}
		// An apply is a patch, and also a create where the object was not there.
		if one.verb == "patch" && one.code == http.StatusCreated {
			used.Insert(permission{one.group, one.resource, "create"})
		}
	}
	return used, slices.ContainsFunc(e.deployments(), func(d deployment) bool { return len(d.OwnerReferences) > 0 })
}

// derived reports whether a permission is needed although no request shows it.
func derived(p permission, owned bool) bool {
	switch p.resource {
	case "events":
		// A correct operator may have had nothing to announce.
		return p.verb == "create" || p.verb == "patch"
	case "lolcows/finalizers":
		// For blockOwnerDeletion in an owner reference.
		return owned && p.verb == "update"
	case "deployments", "services":
		// To change an owner reference: the admission plugin OwnerReferencesPermissionEnforcement asks for it.
		return owned && p.verb == "delete"
	}
	return false
}

// operatorUser is the ServiceAccount of the operator.
const operatorUser = "system:serviceaccount:my-lolcow-system:my-lolcow-controller-manager"

// impersonate gives the operator's ServiceAccount these rules, and has the operator act as it.
func (e *env) impersonate(rules []rbacv1.PolicyRule) {
	name := "part0-" + e.namespace
	// The last rule shows when the API server knows all of them.
	marker := rbacv1.PolicyRule{APIGroups: []string{"part0.example.com"}, Resources: []string{e.namespace}, Verbs: []string{"get"}}
	meta := metav1.ObjectMeta{Name: name}
	e.must(e.client.Create(e.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: append(slices.Clone(rules), marker)}), "creating the role")
	e.must(e.client.Create(e.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	}), "binding the role")
	e.user = operatorUser
	kube.WaitAllowed(e.B, operatorUser, authorizationv1.ResourceAttributes{Verb: "get", Group: "part0.example.com", Resource: e.namespace})
}
