package faults

import (
	"fmt"
	"os"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// permissions are those that the operator's requests need.
type permissions struct {
	mu   sync.Mutex
	used map[permission]bool
}

type permission struct{ verb, group, resource string }

// note notes a request, which may be about an object that is missing.
func (p *permissions) note(about request, missing bool) {
	verbs := []string{about.access}
	resource := about.resource.Resource
	if about.subresource != "" {
		resource += "/" + about.subresource
	}
	if about.applies && missing {
		verbs = append(verbs, "create")
	}
	p.add(about.resource.Group, resource, verbs...)
}

func (p *permissions) noteWatch(resource schema.GroupResource) {
	p.add(resource.Group, resource.Resource, "list", "watch")
}

func (p *permissions) add(group, resource string, verbs ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == nil {
		p.used = map[permission]bool{}
	}
	for _, verb := range verbs {
		p.used[permission{verb, group, resource}] = true
	}
}

// lacking returns what a role does not allow of what was used.
func (p *permissions) lacking(file string) ([]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(content, &role); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var lacking []string
	for one := range p.used {
		allowed := slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.Verbs, one.verb) && slices.Contains(rule.APIGroups, one.group) && slices.Contains(rule.Resources, one.resource)
		})
		if !allowed {
			lacking = append(lacking, fmt.Sprintf("%s %s %s", one.verb, one.group, one.resource))
		}
	}
	slices.Sort(lacking)
	return lacking, nil
}
