package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

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

// The seeds return `Result{Requeue: true}` "for any reason other than error". What each answer to a pass asks for, as
// controller-runtime takes it: the passes of one second for one key, to which nothing else happens.
func TestSeedWisdom_WhatAnAnswerAsksFor(t *testing.T) {
	t.Parallel()
	failure := errors.New("the API server does not answer")
	for name, test := range map[string]struct {
		result reconcile.Result
		err    error
		// passes are the least and the most.
		least, most int
	}{
		"1 nothing":                   {least: 1, most: 1},
		"2 RequeueAfter: 0":           {result: reconcile.Result{RequeueAfter: 0}, least: 1, most: 1},
		"3 RequeueAfter: 100ms":       {result: reconcile.Result{RequeueAfter: 100 * time.Millisecond}, least: 5, most: 10},
		"4 an error":                  {err: failure, least: 5, most: 8},
		"5 Requeue: true":             {result: reconcile.Result{Requeue: true}, least: 5, most: 8}, //nolint:staticcheck // It is deprecated, and this is why.
		"6 a TerminalError":           {err: reconcile.TerminalError(failure), least: 1, most: 1},
		"7 RequeueAfter and an error": {result: reconcile.Result{RequeueAfter: time.Hour}, err: failure, least: 5, most: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gaps := passesOf(t, test.result, test.err)
			t.Logf("%s: passes %d, pauses %v", name, len(gaps)+1, gaps)
			g := NewWithT(t)
			g.Expect(len(gaps) + 1).To(And(BeNumerically(">=", test.least), BeNumerically("<=", test.most)))
		})
	}
}

// passesOf runs a controller, without a cluster, whose passes all end alike, and returns the pauses between those of
// one second.
func passesOf(t *testing.T, result reconcile.Result, err error) (gaps []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var last time.Time
	c, failed := controller.NewUnmanaged("lolcow", controller.Options{
		SkipNameValidation: new(true),
		Logger:             logr.Discard(),
		Reconciler: reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			if !last.IsZero() {
				gaps = append(gaps, now.Sub(last).Round(time.Millisecond))
			}
			last = now
			return result, err
		}),
	})
	g := NewWithT(t)
	g.Expect(failed).NotTo(HaveOccurred())
	g.Expect(c.Watch(source.Func(func(_ context.Context, q queue) error {
		q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "cow"}})
		return nil
	}))).To(Succeed())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	g.Expect(c.Start(ctx)).To(Succeed())
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(gaps)
}
