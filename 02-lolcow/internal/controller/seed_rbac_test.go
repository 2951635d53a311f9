package controller

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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

func seedUser(f *testEnv) string { return "seed-" + f.namespace }

// clientWith is a client that reads and writes directly, as a user who has these permissions and no others.
func (f *testEnv) clientWith(t *testing.T, rules []rbacv1.PolicyRule) client.Client {
	t.Helper()
	name := seedUser(f)
	user, err := apiServer(t).env.AddUser(envtest.User{Name: name}, nil)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.client.Create(f.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})).To(Succeed())
	f.Expect(f.client.Create(f.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})).To(Succeed())
	config := rest.CopyConfig(user.Config())
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	return c
}

// may asks the API server, as `kubectl auth can-i` does.
func (f *testEnv) may(g Gomega, verb, group, resource string) bool {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: seedUser(f),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Namespace: f.namespace,
		},
	}}
	g.Expect(f.client.Create(f.ctx, review)).To(Succeed())
	return review.Status.Allowed
}

// Q3: does `make run` use the markers at all? No: it uses the kubeconfig of the user who types it. The same controller
// works with no marker in the cluster, is rejected with the seed's markers, and works again with the right groups.
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
			f := newTestEnv(t)
			f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo"}))).To(Succeed())
			r := &seedReconciler{Client: f.client}
			if test.rules != nil {
				r.Client = f.clientWith(t, test.rules)
			}
			// A role counts a little after it was written.
			f.Eventually(func(g Gomega) {
				_, err := r.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
				if test.allowed {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
				g.Expect(err).To(MatchError(ContainSubstring(`in API group "apps"`)))
			}).WithTimeout(settleTimeout).Should(Succeed())
			if test.allowed {
				f.Expect(f.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"Moo"}))
			}
		})
	}
}

// The seed's added markers grant permissions on resources that do not exist: RBAC accepts that.
func TestSeedQuestion_TheAddedMarkersGrantNothing(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.clientWith(t, seedRules)
	f.Eventually(func(g Gomega) {
		g.Expect(f.may(g, "create", "my.domain", "deployments")).To(BeTrue(), "of what is not there, all of it")
	}).WithTimeout(settleTimeout).Should(Succeed())
	f.Expect(f.may(f, "create", "apps", "deployments")).To(BeFalse())
	f.Expect(f.may(f, "create", "", "services")).To(BeFalse())
	f.Expect(f.may(f, "list", "", "pods")).To(BeFalse())
}

// generatedRules are those of the role that is generated from the markers of this stage.
func (f *testEnv) generatedRules() []rbacv1.PolicyRule {
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	f.Expect(err).NotTo(HaveOccurred())
	var role rbacv1.ClusterRole
	f.Expect(yaml.UnmarshalStrict(text, &role)).To(Succeed())
	return role.Rules
}

// They are enough for the reconciler of this stage.
func TestGeneratedRoleIsEnough(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.clientWith(t, f.generatedRules())
	f.Eventually(func(g Gomega) {
		for _, of := range []struct{ group, resource string }{{"apps", "deployments"}, {"", "services"}} {
			for _, verb := range []string{"list", "watch", "create", "patch", "delete"} {
				g.Expect(f.may(g, verb, of.group, of.resource)).To(BeTrue(), "%s %s", verb, of.resource)
			}
			g.Expect(f.may(g, "get", of.group, of.resource)).To(BeFalse(), "the cache lists and watches")
		}
	}).WithTimeout(settleTimeout).Should(Succeed())
}

// The admission plugin OwnerReferencesPermissionEnforcement lets only those change the owner references of an object who
// may delete it. Without that permission each apply was rejected, from the day on that another client had changed ours.
func TestEditOfTheOwnerReferenceIsCorrected(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	lolcow := f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	for _, object := range []client.Object{f.deployment(), f.service()} {
		reference := object.GetOwnerReferences()
		reference[0].BlockOwnerDeletion = new(false)
		object.SetOwnerReferences(reference)
		f.Expect(f.client.Update(f.ctx, object)).To(Succeed())
	}
	f.clientWith(t, f.generatedRules())
	// Reads are the cache's, which lists: the role has no get.
	limited := rest.CopyConfig(f.config)
	limited.Impersonate.UserName = seedUser(f)
	writer, err := client.NewWithWatch(limited, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	f.reconciler = f.newReconciler(interceptor.NewClient(writer, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return f.client.Get(ctx, key, obj, opts...)
		},
	}))
	// A role counts a little after it was written.
	f.Eventually(func() error {
		_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
		return err
	}).WithTimeout(settleTimeout).Should(Succeed())
	for _, object := range []client.Object{f.deployment(), f.service()} {
		f.Expect(object.GetOwnerReferences()[0].BlockOwnerDeletion).To(HaveValue(BeTrue()))
	}
	f.expectReady(f.get(lolcow.Name), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}
