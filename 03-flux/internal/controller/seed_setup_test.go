package controller

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// Q9: does FluxSetup have a custom resource? Yes: its controller works on objects of the kind. Users do not write them:
// the Flux controller does.
func TestSeedQuestion_FluxSetupHasACR(t *testing.T) {
	t.Parallel()
	o := newOperator(t, fluxOf(2))
	key := ctrl.Request{NamespacedName: o.key("bees")}

	// 1. The CRD is served, and there is no FluxSetup: its controller has nothing to do, however many Fluxes there are.
	o.Expect(fetch[v1alpha1.FluxSetup](o.setupTestEnv)).To(BeNil())
	_, err := o.reconciler.Reconcile(o.ctx, key)
	o.Expect(err).NotTo(HaveOccurred())
	o.Expect(o.requests.writes).To(BeZero())
	o.Expect(o.job()).To(BeNil())

	// 2. One reconciliation of the Flux creates one, of the same name, which the Flux owns.
	_, err = o.fluxes.Reconcile(o.ctx, key)
	o.Expect(err).NotTo(HaveOccurred())
	o.Expect(metav1.IsControlledBy(o.setup(), o.flux)).To(BeTrue())
	o.Expect(o.job()).To(BeNil(), "the Flux controller creates nothing else")

	// 3. Now its controller works on it.
	o.settle()
	o.Expect(metav1.IsControlledBy(o.job(), o.setup())).To(BeTrue())

	// 4. A FluxSetup that a user creates, as in the quick start of the Flux operator's authors, is an ordinary object,
	//    and nothing is created for it.
	byHand := firstSetup(&v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "by-hand", Namespace: o.namespace}, Spec: fluxOf(2)})
	byHand.OwnerReferences = nil
	o.Expect(o.client.Create(o.ctx, byHand)).To(Succeed())
	_, err = o.reconciler.Reconcile(o.ctx, ctrl.Request{NamespacedName: o.key("by-hand")})
	o.Expect(err).NotTo(HaveOccurred())
	o.Expect(o.client.Get(o.ctx, o.key("by-hand"), byHand)).To(Succeed())
	accepted := apimeta.FindStatusCondition(byHand.Status.Conditions, v1alpha1.ConditionAccepted)
	o.Expect(accepted).To(HaveValue(HaveField("Reason", v1alpha1.ReasonNotOwned)))
	o.Expect(apierrors.IsNotFound(o.client.Get(o.ctx, o.key("by-hand"), &corev1.ConfigMap{}))).To(BeTrue())
}

// A user who is bound to this stage's role for users cannot write FluxSetups.
func TestSeedQuestion_UsersDoNotWriteFluxSetups(t *testing.T) {
	t.Parallel()
	b := newEmptySetupTestEnv(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "flux_editor_role.yaml"))
	b.Expect(err).NotTo(HaveOccurred())
	var role rbacv1.ClusterRole
	b.Expect(yaml.UnmarshalStrict(text, &role)).To(Succeed())
	name := "editor-of-" + b.namespace
	b.Expect(b.client.Create(b.ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace}, Rules: role.Rules})).To(Succeed())
	b.Expect(b.client.Create(b.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})).To(Succeed())
	editor, err := client.New(apiServer(t).addUser(t, name), client.Options{Scheme: scheme, Mapper: b.client.RESTMapper()})
	b.Expect(err).NotTo(HaveOccurred())

	flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "bees", Namespace: b.namespace}, Spec: fluxOf(1)}
	b.Eventually(func() error { return editor.Create(b.ctx, flux) }).WithTimeout(30*time.Second).Should(Succeed(), "the role takes effect")
	err = editor.Create(b.ctx, firstSetup(flux))
	b.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
}
