// Package lostmarkers is exercise 13b: RBAC markers that reach no role.
package lostmarkers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"example.com/workbook/shared/exercise/check"
)

// permission is one verb on one resource.
type permission struct{ verb, group, resource string }

func (p permission) String() string {
	return strings.TrimSuffix(p.verb+" "+p.resource+"."+p.group, ".")
}

// needs are the permissions that the operator needs, by the marker that asks for them.
var needs = []struct {
	marker      string
	permissions []permission
}{
	{"read Lolcows", []permission{{"list", lolcows, "lolcows"}, {"watch", lolcows, "lolcows"}}},
	{"read Pods", []permission{{"list", "", "pods"}, {"watch", "", "pods"}}},
	{"patch the status of Lolcows", []permission{{"patch", lolcows, "lolcows/status"}}},
	{"read and create Services", []permission{{"list", "", "services"}, {"watch", "", "services"}, {"create", "", "services"}}},
}

const lolcows = "my.domain"

// excess is what no marker asks for.
var excess = []permission{
	{"delete", "", "pods"}, {"get", "", "secrets"}, {"list", "", "secrets"}, {"update", lolcows, "lolcows"},
	{"create", "rbac.authorization.k8s.io", "clusterrolebindings"}, {"patch", "", "nodes"},
}

// Check generates the role, compares, applies what is in config/, and asks the API server.
func Check(t *check.T, work check.Work[check.Files]) {
	var generated, kept rbacv1.ClusterRole
	ok := t.Behaviour("make manifests generates a role, and config/role.yaml has one", func(b *check.B) {
		generated = manifests(b, work.Dir)
		kept = read(b, filepath.Join(work.Dir, "config", "role.yaml"))
	})
	if !ok {
		return
	}
	for _, need := range needs {
		t.Behaviour("the role that is generated permits to "+need.marker, func(b *check.B) {
			for _, one := range need.permissions {
				if !permits(generated, one) {
					b.Fatalf("the role that make manifests generates does not permit to %s: the marker reaches no role", one)
				}
			}
		})
	}
	t.Behaviour("config/role.yaml is what make manifests generates", func(b *check.B) { compare(b, generated, kept) })
	t.Behaviour("the role permits nothing that the operator does not need", func(b *check.B) {
		for _, one := range expand(generated) {
			if !needed(one) {
				b.Fatalf("the role permits to %s, and the operator does not need that", one)
			}
		}
	})
	onServer(t, work.Dir)
}

// onServer asks the API server, with the role and the binding in config/.
func onServer(t *check.T, dir string) {
	if !t.Behaviour("what is in config/ can be applied", func(b *check.B) { apply(b, dir) }) {
		return
	}
	t.Behaviour("the API server permits the operator what it needs", func(b *check.B) {
		for _, need := range needs {
			for _, one := range need.permissions {
				if !allowed(b, account, one) {
					b.Fatalf("the ServiceAccount cowbell may not %s", one)
				}
			}
		}
	})
	t.Behaviour("the API server permits the operator nothing else", func(b *check.B) {
		for _, one := range excess {
			if allowed(b, account, one) {
				b.Fatalf("the ServiceAccount cowbell may %s, which no marker asks for", one)
			}
		}
	})
	t.Behaviour("the API server permits no other ServiceAccount what the operator may do", func(b *check.B) {
		for _, need := range needs {
			for _, one := range need.permissions {
				if allowed(b, another, one) {
					b.Fatalf("the ServiceAccount cowbell of the namespace default may %s, too", one)
				}
			}
		}
	})
}

// compare fails if the role in config/ is not the one that is generated.
func compare(b *check.B, generated, kept rbacv1.ClusterRole) {
	if generated.Name != kept.Name {
		b.Fatalf("make manifests generates a role with the name %s, and config/role.yaml has %s", generated.Name, kept.Name)
	}
	for _, one := range expand(generated) {
		if !permits(kept, one) {
			b.Fatalf("the markers ask for %s, and config/role.yaml does not permit it: the role was not generated after the last change", one)
		}
	}
	for _, one := range expand(kept) {
		if !permits(generated, one) {
			b.Fatalf("config/role.yaml permits to %s, and the role that make manifests generates does not: the next make manifests removes it", one)
		}
	}
}

// read reads a role as controller-gen writes it.
func read(b *check.B, file string) rbacv1.ClusterRole {
	var role rbacv1.ClusterRole
	content, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		b.Fatalf("there is no config/role.yaml")
	}
	if err != nil {
		b.Fatalf("%v", err)
	}
	if err := yaml.Unmarshal(content, &role); err != nil || role.Kind != "ClusterRole" {
		b.Fatalf("%s is no ClusterRole: %v", filepath.Base(file), err)
	}
	if all := objects(b, file); len(all) > 1 {
		b.Fatalf("%s has a %s, too: the operator needs one ClusterRole, and no marker with namespace=", filepath.Base(file), all[1].GetKind())
	}
	return role
}

// expand returns each permission of a role, in an order of its own.
func expand(role rbacv1.ClusterRole) []permission {
	var all []permission
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, permission{verb, group, resource})
				}
			}
		}
	}
	return all
}

// permits says whether a role permits something, also by a *.
func permits(role rbacv1.ClusterRole, want permission) bool {
	covers := func(has, asked string) bool { return has == asked || has == "*" }
	return slices.ContainsFunc(expand(role), func(has permission) bool {
		return covers(has.verb, want.verb) && covers(has.group, want.group) && covers(has.resource, want.resource)
	})
}

func needed(one permission) bool {
	for _, need := range needs {
		if slices.Contains(need.permissions, one) {
			return true
		}
	}
	return false
}
