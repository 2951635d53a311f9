package controller

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

var everyVerb = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// seedTemplateRules are what the markers of the template amount to.
var seedTemplateRules = []rbacv1.PolicyRule{
	{APIGroups: []string{"my.domain"}, Resources: []string{"lolcows"}, Verbs: everyVerb},
	{APIGroups: []string{"my.domain"}, Resources: []string{"lolcows/status"}, Verbs: []string{"get", "update", "patch"}},
	{APIGroups: []string{"my.domain"}, Resources: []string{"lolcows/finalizers"}, Verbs: []string{"update"}},
}

// seedRules are those and the three that the seed's author added, in the group that the author named.
var seedRules = append(append([]rbacv1.PolicyRule{}, seedTemplateRules...),
	rbacv1.PolicyRule{APIGroups: []string{"my.domain"}, Resources: []string{"deployments", "services"}, Verbs: everyVerb},
	rbacv1.PolicyRule{APIGroups: []string{"my.domain"}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create"}},
)

// rightGroups are the same, in the groups that these resources are in.
var rightGroups = append(append([]rbacv1.PolicyRule{}, seedTemplateRules...),
	rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: everyVerb},
	rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: everyVerb},
)

func seedUser(w *world) string { return "seed-" + w.namespace }

// clientWith is a client that reads and writes directly, as a user who has these rights and no others.
func (w *world) clientWith(t *testing.T, rules []rbacv1.PolicyRule) client.Client {
	t.Helper()
	name := seedUser(w)
	user, err := apiServer(t).env.AddUser(envtest.User{Name: name}, nil)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.client.Create(w.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})).To(Succeed())
	w.Expect(w.client.Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})).To(Succeed())
	config := rest.CopyConfig(user.Config())
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: w.client.RESTMapper()})
	w.Expect(err).NotTo(HaveOccurred())
	return c
}

// may asks the API server, as `kubectl auth can-i` does.
func (w *world) may(g Gomega, verb, group, resource string) bool {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: seedUser(w),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Namespace: w.namespace,
		},
	}}
	g.Expect(w.client.Create(w.ctx, review)).To(Succeed())
	return review.Status.Allowed
}

// Q3: does `make run` use the markers at all? No: it uses the kubeconfig of whoever types it. The same controller
// works with no marker in the cluster, is refused with the seed's markers, and works again with the right groups.
func TestSeedQuestion_MakeRunIgnoresTheMarkers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rules   []rbacv1.PolicyRule // nil: the kubeconfig of an administrator
		allowed bool
	}{
		"make run, as yourself":                {nil, true},
		"as an account, with the seed's role":  {seedRules, false},
		"as an account, with the right groups": {rightGroups, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo"}))).To(Succeed())
			r := &seedReconciler{Client: w.client}
			if test.rules != nil {
				r.Client = w.clientWith(t, test.rules)
			}
			// A role counts a little after it was written.
			w.Eventually(func(g Gomega) {
				_, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
				if test.allowed {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
				g.Expect(err).To(MatchError(ContainSubstring(`in API group "apps"`)))
			}).WithTimeout(settleTimeout).Should(Succeed())
			if test.allowed {
				w.Expect(w.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"Moo"}))
			}
		})
	}
}

// The seed's added markers grant rights to resources that do not exist: RBAC does not mind.
func TestSeedQuestion_TheAddedMarkersGrantNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clientWith(t, seedRules)
	w.Eventually(func(g Gomega) {
		g.Expect(w.may(g, "create", "my.domain", "deployments")).To(BeTrue(), "of what is not there, all of it")
	}).WithTimeout(settleTimeout).Should(Succeed())
	w.Expect(w.may(w, "create", "apps", "deployments")).To(BeFalse())
	w.Expect(w.may(w, "create", "", "services")).To(BeFalse())
	w.Expect(w.may(w, "list", "", "pods")).To(BeFalse())
}

// The role that is generated from the markers of this stage is enough for the reconciler of this stage.
func TestGeneratedRoleIsEnough(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	var role rbacv1.ClusterRole
	w.Expect(yaml.UnmarshalStrict(text, &role)).To(Succeed())
	w.clientWith(t, role.Rules)
	w.Eventually(func(g Gomega) {
		for _, of := range []struct{ group, resource string }{{"apps", "deployments"}, {"", "services"}} {
			for _, verb := range []string{"list", "watch", "create", "patch"} {
				g.Expect(w.may(g, verb, of.group, of.resource)).To(BeTrue(), "%s %s", verb, of.resource)
			}
			g.Expect(w.may(g, "delete", of.group, of.resource)).To(BeFalse(), "the garbage collector deletes")
			g.Expect(w.may(g, "get", of.group, of.resource)).To(BeFalse(), "the cache lists and watches")
		}
	}).WithTimeout(settleTimeout).Should(Succeed())
}
