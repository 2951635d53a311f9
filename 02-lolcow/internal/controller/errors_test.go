package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// failingApply is a client whose applies fail with what fail returns; nil lets one through.
func (w *world) failingApply(fail func(n int) error) client.Client {
	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	n := 0
	return interceptor.NewClient(withWatch, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, desired runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			n++
			if err := fail(n); err != nil {
				return err
			}
			return c.Apply(ctx, desired, options...)
		},
	})
}

// webhookDown is what the API server responds while a fail-closed admission webhook cannot be reached, the nth time.
func webhookDown(n int) error {
	return apierrors.NewInternalError(fmt.Errorf(
		`failed calling webhook "w.example.com": failed to call webhook: Post "https://w.default.svc:443/?timeout=10s": read tcp 10.0.0.%d:%d->10.96.3.7:443: i/o timeout after %dms`, n, 40000+n, n))
}

// A Service is deleted while an admission webhook is down: that Ready stayed True was bug 6 of the house.
func TestTransientErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	w.rollOut("cow")
	w.reconcile("cow")
	w.expectReady(w.get("cow"), metav1.ConditionTrue, v1alpha1.ReasonServing)
	w.recorded()

	w.Expect(w.client.Delete(w.ctx, w.service())).To(Succeed())
	w.reconciler = w.newReconciler(w.failingApply(webhookDown))
	var versions []string
	for range 20 {
		_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
		w.Expect(err).To(MatchError(ContainSubstring("failed calling webhook")), "the queue tries again")
		versions = append(versions, w.get("cow").ResourceVersion)
	}
	ready := w.expectReady(w.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonAPIError)
	w.Expect(ready.Message).To(And(HavePrefix("applying Service cow: "), ContainSubstring(`webhook "w.example.com"`), Not(ContainSubstring("10.96"))))
	w.Expect(versions).To(HaveEach(versions[0]), "one write, not one for each retry")
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning APIError")))

	w.reconciler = w.newReconciler(w.client)
	w.reconcile("cow")
	w.expectReady(w.get("cow"), metav1.ConditionTrue, v1alpha1.ReasonServing)
}

// What fails with another text each time writes the status once, and writes it again for another spec.
func TestTransientErrorKeepsItsFirstMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reconciler = w.newReconciler(w.failingApply(func(n int) error { return apierrors.NewInternalError(fmt.Errorf("request id-%d failed", n)) }))
	w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	reconcile := func() string {
		_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
		w.Expect(err).To(HaveOccurred())
		return w.expectReady(w.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonAPIError).Message
	}
	first := reconcile()
	w.Expect(reconcile()).To(Equal(first))
	lolcow := w.get("cow")
	lolcow.Spec.Greeting = "Moo"
	w.Expect(w.client.Update(w.ctx, lolcow)).To(Succeed())
	w.Expect(reconcile()).NotTo(Equal(first))
}

// A status that was computed from an old state is not written.
func TestStaleStateIsNotReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reconciler = w.newReconciler(w.failingApply(func(int) error {
		return apierrors.NewConflict(appsv1.Resource("deployments"), "cow", errors.New("the object has been modified"))
	}))
	w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
	w.Expect(apierrors.IsConflict(err)).To(BeTrue())
	w.Expect(w.get("cow").Status).To(BeZero())
}

// A ResourceQuota's admission responds with 409 under contention: nothing of the name exists.
func TestConflictOfAQuotaIsNoNameConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reconciler = w.newReconciler(w.failingApply(func(n int) error {
		if n > 1 {
			return nil
		}
		return apierrors.NewConflict(corev1.Resource("resourcequotas"), "q", errors.New("the object has been modified"))
	}))
	w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
	w.Expect(apierrors.IsConflict(err)).To(BeTrue(), "the queue tries again")
	w.reconcile("cow")
	w.expectReady(w.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}

// A name conflict of the Deployment does not hide that the Service is rejected, and the Service is retried.
func TestAllRejectionsAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Expect(w.client.Create(w.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: w.namespace}, Spec: foreignDeploymentSpec(),
	})).To(Succeed())
	w.reconciler = w.newReconciler(w.failingApply(func(int) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no Services today"}}
	}))
	w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
	w.Expect(err).To(MatchError("no Services today"))
	ready := w.expectReady(w.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	w.Expect(ready.Message).To(And(ContainSubstring("Deployment cow exists"), HaveSuffix("; no Services today")))
}

// The API server accepts 32,768 bytes in the message of a condition: with more, the status could never be written.
func TestLongMessagesAreShortened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reconciler = w.newReconciler(w.failingApply(func(int) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: strings.Repeat("ab", 20_000)}}
	}))
	w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
	w.Expect(err).To(MatchError(HavePrefix("abab")))
	ready := w.expectReady(w.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	w.Expect(len(ready.Message)).To(BeNumerically("<=", maxConditionMessage))
}

func TestNormalizeMessage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(normalizeMessage(webhookDown(1).Error())).To(Equal(normalizeMessage(webhookDown(27).Error())))
	for in, want := range map[string]string{
		"dial tcp 10.96.3.7:443: connect: connection refused": "dial tcp ADDRESS: connect: connection refused",
		"dial tcp [fd00::7]:443: i/o timeout":                 "dial tcp ADDRESS: i/o timeout",
		"write tcp 10.0.0.1:44210->10.96.3.7:443: broken":     "write tcp ADDRESS: broken",
		"no response within 1m30.5s":                          "no response within DURATION",
		"Deployment cow-2 has 3 replicas":                     "Deployment cow-2 has 3 replicas",
	} {
		g.Expect(normalizeMessage(in)).To(Equal(want))
	}
}

// controller-runtime recovers from a panic in Reconcile, but not from one in a goroutine that Reconcile starts: one bad
// object would crash the operator again and again, for all.
func TestPanicStaysInTheCallersGoroutine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reconciler = w.newReconciler(w.failingApply(func(int) error { panic("a bad object") }))
	w.Expect(w.client.Create(w.ctx, w.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	w.Expect(func() { _, _ = w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")}) }).To(PanicWith("a bad object"))
}
