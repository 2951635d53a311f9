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

// Q2: is Owns necessary? Not for the children to be made, and not for a new spec to arrive. It is what wakes the
// controller when a child changes or goes, and it looks at the child's owner reference to know whom to wake.
func TestSeedQuestion_OwnsIsWhatWakesNotWhatOwns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ owns, reference, repaired bool }{
		{owns: true, reference: true, repaired: true},
		{owns: false, reference: true, repaired: false},
		{owns: true, reference: false, repaired: false},
	} {
		t.Run(fmt.Sprintf("owns=%t reference=%t", test.owns, test.reference), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := startSeed(t, w, false, test.owns)
			lolcow := w.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
			w.Expect(w.client.Create(w.ctx, lolcow)).To(Succeed())
			w.expectGreeting("Moo")
			lolcow.Spec.Greeting = "Baa"
			w.Expect(w.client.Update(w.ctx, lolcow)).To(Succeed())
			w.expectGreeting("Baa")
			w.Expect(metav1.IsControlledBy(w.deployment(), lolcow)).To(BeTrue(), "whoever sets the reference owns, Owns does not")

			if !test.reference {
				w.Expect(w.client.Patch(w.ctx, w.deployment(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)))).To(Succeed())
			}
			r.waitForRest(w)
			passes, _, _ := r.seen()
			w.Expect(w.client.Delete(w.ctx, w.deployment())).To(Succeed())
			if test.repaired {
				w.expectGreeting("Baa")
				return
			}
			w.Consistently(func(g Gomega) {
				err := w.client.Get(w.ctx, w.key("cow"), &appsv1.Deployment{})
				g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
			}).WithTimeout(2*time.Second).Should(Succeed(), "nobody was woken")
			after, _, _ := r.seen()
			w.Expect(after).To(Equal(passes))

			// Any event of the Lolcow itself does it, whatever it is about: the pass looks at all.
			w.Expect(w.client.Patch(w.ctx, lolcow, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))).To(Succeed())
			w.expectGreeting("Baa")
		})
	}
}

// expectGreeting waits until the Deployment "cow" is there and has the greeting.
func (w *world) expectGreeting(greeting string) {
	w.Eventually(func(g Gomega) {
		var deployment appsv1.Deployment
		g.Expect(w.client.Get(w.ctx, w.key("cow"), &deployment)).To(Succeed())
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{greeting}))
	}).WithTimeout(settleTimeout).Should(Succeed())
}

// waitForRest waits until there was no pass for a second.
func (r *seedReconciler) waitForRest(w *world) {
	w.Eventually(func(g Gomega) {
		before, _, _ := r.seen()
		g.Consistently(func() int { passes, _, _ := r.seen(); return passes }).WithTimeout(time.Second).Should(Equal(before))
	}).WithTimeout(settleTimeout).Should(Succeed())
}
