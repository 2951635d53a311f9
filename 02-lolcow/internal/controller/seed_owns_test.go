package controller

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// Q2: is Owns necessary? Not for creating the dependents, and not for noticing a new spec. It triggers a
// reconciliation when a dependent changes or is deleted, and finds the owner to enqueue in the dependent's owner reference.
func TestSeedQuestion_OwnsTriggersAndDoesNotOwn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ owns, reference, repaired bool }{
		{owns: true, reference: true, repaired: true},
		{owns: false, reference: true, repaired: false},
		{owns: true, reference: false, repaired: false},
	} {
		t.Run(fmt.Sprintf("owns=%t reference=%t", test.owns, test.reference), func(t *testing.T) {
			t.Parallel()
			f := newTestEnv(t)
			r := startSeed(t, f, false, test.owns)
			lolcow := f.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
			f.Expect(f.client.Create(f.ctx, lolcow)).To(Succeed())
			f.expectGreeting("Moo")
			lolcow.Spec.Greeting = "Baa"
			f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
			f.expectGreeting("Baa")
			f.Expect(metav1.IsControlledBy(f.deployment(), lolcow)).To(BeTrue(), "the reference makes the owner, Owns does not")

			if !test.reference {
				f.Expect(f.client.Patch(f.ctx, f.deployment(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)))).To(Succeed())
			}
			r.waitForRest(f)
			calls, _, _ := r.seen()
			f.Expect(f.client.Delete(f.ctx, f.deployment())).To(Succeed())
			if test.repaired {
				f.expectGreeting("Baa")
				return
			}
			f.Consistently(func(g Gomega) {
				err := f.client.Get(f.ctx, f.key("cow"), &appsv1.Deployment{})
				g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
			}).WithTimeout(2*time.Second).Should(Succeed(), "no reconciliation was triggered")
			after, _, _ := r.seen()
			f.Expect(after).To(Equal(calls))

			// Any event of the Lolcow itself does it, whatever it is about: a reconciliation looks at everything.
			f.Expect(f.client.Patch(f.ctx, lolcow, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))).To(Succeed())
			f.expectGreeting("Baa")
		})
	}
}

// expectGreeting waits until the Deployment "cow" is there and has the greeting.
func (f *testEnv) expectGreeting(greeting string) {
	f.Eventually(func(g Gomega) {
		var deployment appsv1.Deployment
		g.Expect(f.client.Get(f.ctx, f.key("cow"), &deployment)).To(Succeed())
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{greeting}))
	}).WithTimeout(settleTimeout).Should(Succeed())
}

// waitForRest waits until there was no reconciliation for a second.
func (r *seedReconciler) waitForRest(f *testEnv) {
	f.Eventually(func(g Gomega) {
		before, _, _ := r.seen()
		g.Consistently(func() int { calls, _, _ := r.seen(); return calls }).WithTimeout(time.Second).Should(Equal(before))
	}).WithTimeout(settleTimeout).Should(Succeed())
}
