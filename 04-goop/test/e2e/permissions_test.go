package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

var _ = Describe("Permissions:", func() {
	It("the operator's roles have all permissions that it uses, and no others", Serial, func(ctx SpecContext) {
		env.ExpectExactPermissions(ctx, derived, func() {
			w := newTestEnv(ctx)
			goop := w.create("whole", v1alpha1.GoopSpec{Cmd: endless, JobCount: new(int32(2)), CleanupCmd: cleans})
			w.running(goop, 2)
			w.change(goop, func(spec *v1alpha1.GoopSpec) { spec.Suspend = true })
			w.suspended(goop, 0)
			w.delete(goop)
			w.gone(goop)
			brief := w.create("brief", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(2)), TTLSecondsAfterFinished: new(int32(0))})
			w.complete(brief, 2)
			w.leaves(only("brief"))
		})
	})

	It("users with the editor role may write Goops, and cannot change their dependents", func(ctx SpecContext) {
		w := newTestEnv(ctx)
		const role = "goop-goop-editor-role"
		Expect(env.Client.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "user"}},
		})).To(Succeed())
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "user"}
		user, err := client.New(config, client.Options{Scheme: env.Client.Scheme()})
		Expect(err).NotTo(HaveOccurred())

		goop := &v1alpha1.Goop{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "theirs"},
			Spec:       v1alpha1.GoopSpec{Cmd: endless, JobCount: new(int32(1))},
		}
		// The authorizer may receive the binding a moment later.
		Eventually(func() error { return user.Create(ctx, goop) }).Should(Succeed())
		w.running(goop, 1)
		daemonSet := w.daemonSets(goop)[0]
		Expect(apierrors.IsForbidden(user.Delete(ctx, &daemonSet))).To(BeTrue())
		Expect(user.Delete(ctx, goop)).To(Succeed())
		w.gone(goop)
	})
})

// derived are permissions without requests of the same name, and what they are needed for.
var derived = map[string]string{
	"update goop.example.com/goops/finalizers": "blockOwnerDeletion in the owner references",
	"patch events.k8s.io/events":               "an Event that comes again within minutes is counted up",
	"patch /events":                            "an Event of leader election that comes again is, too",
}
