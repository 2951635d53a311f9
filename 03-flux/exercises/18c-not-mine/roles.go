package notmine

import (
	"os"
	"path/filepath"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// user is a user with one of the roles, in one namespace.
type user struct {
	b               *check.B
	client          kubernetes.Interface
	namespace, name string
	role            string
}

func newUser(b *check.B, dir, role string) *user {
	u := &user{b: b, client: kube.Client(b), namespace: kube.Namespace(b), role: role}
	u.name = "user-of-" + u.namespace
	rules := readRole(b, dir, role).Rules
	// So that the check can tell when the API server knows of the role.
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"markers"}, Verbs: []string{"get"}})
	// In a namespace a Role permits what a ClusterRole with a RoleBinding does.
	_, err := u.client.RbacV1().Roles(u.namespace).Create(b.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules},
		metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("the API server rejects the role %s: %v", role, err)
	}
	_, err = u.client.RbacV1().RoleBindings(u.namespace).Create(b.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u.name}},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a RoleBinding: %v", err)
	}
	kube.WaitAllowed(b, u.name, authorizationv1.ResourceAttributes{
		Namespace: u.namespace, Verb: "get", Group: "example.com", Resource: "markers",
	})
	return u
}

// readRole reads a role of roles.yaml.
func readRole(b *check.B, dir, name string) rbacv1.ClusterRole {
	content, err := os.ReadFile(filepath.Join(dir, "roles.yaml"))
	if err != nil {
		b.Fatalf("there is no roles.yaml: %v", err)
	}
	for document := range strings.SplitSeq(string(content), "\n---") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			b.Fatalf("roles.yaml: %v", err)
		}
		if role.Kind == "ClusterRole" && role.Name == name {
			return role
		}
	}
	b.Fatalf("roles.yaml has no ClusterRole %s", name)
	return rbacv1.ClusterRole{}
}

// onlyFlux checks that no rule of the role is about another API group.
func onlyFlux(b *check.B, role rbacv1.ClusterRole) {
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			if group != v1alpha1.SchemeGroupVersion.Group {
				b.Fatalf("the role %s has a rule for %v in the API group %q", role.Name, rule.Resources, group)
			}
		}
	}
}

// may returns a function that checks that the user may do these things with resources.
func (u *user) may(verbs ...string) func(resources ...string) { return u.expect(true, verbs) }

// mayNot is the contrary.
func (u *user) mayNot(verbs ...string) func(resources ...string) { return u.expect(false, verbs) }

func (u *user) expect(want bool, verbs []string) func(resources ...string) {
	return func(resources ...string) {
		for _, resource := range resources {
			for _, verb := range verbs {
				got := kube.Allowed(u.b, u.name, authorizationv1.ResourceAttributes{
					Namespace: u.namespace, Verb: verb, Group: v1alpha1.SchemeGroupVersion.Group, Resource: resource,
				})
				switch {
				case got && !want:
					u.b.Fatalf("with the role %s a user may %s %s", u.role, verb, resource)
				case want && !got:
					u.b.Fatalf("with the role %s a user may not %s %s", u.role, verb, resource)
				}
			}
		}
	}
}

// cannotCreateSetup tries it as the user.
func (u *user) cannotCreateSetup() {
	config := kube.Config(u.b)
	config.Impersonate = rest.ImpersonationConfig{UserName: u.name}
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	if err == nil {
		err = c.Create(u.b.Context(), newSetup(client.ObjectKey{Namespace: u.namespace, Name: "by-hand"}))
	}
	if !apierrors.IsForbidden(err) {
		u.b.Fatalf("a user with the role %s has tried to create a FluxSetup, and it was not forbidden: %v", u.role, err)
	}
}
