package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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
func (f *testEnv) failingApply(fail func(n int) error) client.Client {
	withWatch, err := client.NewWithWatch(f.config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
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

// hangingApply is a client whose applies wait until their time has expired.
func (f *testEnv) hangingApply() client.Client {
	withWatch, err := client.NewWithWatch(f.config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(withWatch, interceptor.Funcs{
		Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
}

// webhookDown is what the API server responds while a fail-closed admission webhook cannot be reached, the nth time.
func webhookDown(n int) error {
	return apierrors.NewInternalError(fmt.Errorf(
		`failed calling webhook "f.example.com": failed to call webhook: Post "https://f.default.svc:443/?timeout=10s": read tcp 10.0.0.%d:%d->10.96.3.7:443: i/o timeout after %dms`, n, 40000+n, n))
}

// A Service is deleted while an admission webhook is down. Ready stayed True once.
func TestTransientErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	f.rollOut("cow")
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionTrue, v1alpha1.ReasonServing)
	f.recorded()

	f.Expect(f.client.Delete(f.ctx, f.service())).To(Succeed())
	f.reconciler = f.newReconciler(f.failingApply(webhookDown))
	var versions []string
	for range 20 {
		f.clock.Step(time.Minute)
		_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
		f.Expect(err).To(MatchError(ContainSubstring("failed calling webhook")), "the queue tries again")
		versions = append(versions, f.get("cow").ResourceVersion)
	}
	ready := f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonAPIError)
	f.Expect(ready.Message).To(And(HavePrefix("applying Service cow: "), ContainSubstring(`webhook "f.example.com"`), Not(ContainSubstring("10.96"))))
	f.Expect(versions).To(HaveEach(versions[0]), "one write, not one for each retry")
	f.Expect(f.recorded()).To(ConsistOf(HavePrefix("Warning APIError")))

	f.reconciler = f.newReconciler(f.client)
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionTrue, v1alpha1.ReasonServing)
}

// An admission webhook holds the requests up for longer than a reconciliation may take. It stops in time to say so.
func TestHangingRequestIsReported(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	ctx, cancel := context.WithTimeout(f.ctx, reportTime+5*time.Second)
	defer cancel()
	f.reconciler = f.newReconciler(f.hangingApply())
	_, err := f.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(err).To(MatchError(context.DeadlineExceeded), "the queue tries again")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonAPIError)
	f.Expect(f.recorded()).To(ConsistOf(HavePrefix("Warning APIError")))
}

// Status fields whose values could not be read in the time that was left keep their values: the pods still serve.
func TestHangingRequestLeavesWhatIsServedInTheStatus(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	f.rollOut("cow")
	f.reconcile("cow")
	served := f.get("cow").Status
	f.Expect(served.Port).NotTo(BeZero())

	lolcow := f.get("cow")
	lolcow.Spec.Greeting = "Oink"
	f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
	f.reconciler = f.newReconciler(f.hangingApply())
	ctx, cancel := context.WithTimeout(f.ctx, reportTime+5*time.Second)
	defer cancel()
	_, err := f.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(err).To(MatchError(context.DeadlineExceeded))
	lolcow = f.get("cow")
	f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
	f.Expect(lolcow.Status.Greeting).To(Equal(served.Greeting))
	f.Expect(lolcow.Status.Port).To(Equal(served.Port))
}

// A cache that does not catch up with a write, because its watch hangs, tells nothing of what is served.
func TestUnreadDependentIsNotReportedAsGone(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	f.rollOut("cow")
	f.reconcile("cow")
	served := f.get("cow").Status

	withWatch, err := client.NewWithWatch(f.config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	f.reconciler = f.newReconciler(interceptor.NewClient(withWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, isDeployment := object.(*appsv1.Deployment); isDeployment {
				return fmt.Errorf("failed to wait for cache to catch up: %w", context.DeadlineExceeded)
			}
			return c.Get(ctx, key, object, options...)
		},
	}))
	_, err = f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(err).To(MatchError(context.DeadlineExceeded), "the queue tries again")
	f.Expect(f.get("cow").Status.Greeting).To(Equal(served.Greeting))
	f.Expect(f.get("cow").Status.Port).To(Equal(served.Port))
}

// What fails with another text each time writes the status once, and writes it again for another spec.
func TestTransientErrorKeepsItsFirstMessage(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.reconciler = f.newReconciler(f.failingApply(func(n int) error { return apierrors.NewInternalError(fmt.Errorf("request id-%d failed", n)) }))
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	reconcile := func() string {
		f.clock.Step(time.Minute)
		_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
		f.Expect(err).To(HaveOccurred())
		return f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonAPIError).Message
	}
	first := reconcile()
	f.Expect(reconcile()).To(Equal(first))
	lolcow := f.get("cow")
	lolcow.Spec.Greeting = "Moo"
	f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
	f.Expect(reconcile()).NotTo(Equal(first))
}

// A status that was computed from an old state is not written. A Conflict that lasts is reported: the cache is not behind for
// so long.
func TestStaleStateIsNotReported(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.reconciler = f.newReconciler(f.failingApply(func(int) error {
		return apierrors.NewConflict(appsv1.Resource("deployments"), "cow", errors.New("the object has been modified"))
	}))
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(apierrors.IsConflict(err)).To(BeTrue())
	f.Expect(f.get("cow").Status).To(BeZero())

	f.clock.Step(staleTimeout)
	for range 2 {
		_, err = f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
		f.Expect(err).To(HaveOccurred(), "it is retried")
		f.Expect(f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonAPIError).Message).To(And(
			HavePrefix("each try has failed for more than 30s: "), ContainSubstring("the object has been modified")))
	}
	f.Expect(f.recorded()).To(ConsistOf(HavePrefix("Warning APIError")))
	f.reconciler.Client = f.client
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}

// A ResourceQuota's admission responds with 409 under contention: nothing of the name exists.
func TestConflictOfAQuotaIsNoNameConflict(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.reconciler = f.newReconciler(f.failingApply(func(n int) error {
		if n > 1 {
			return nil
		}
		return apierrors.NewConflict(corev1.Resource("resourcequotas"), "q", errors.New("the object has been modified"))
	}))
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(apierrors.IsConflict(err)).To(BeTrue(), "the queue tries again")
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}

// A name conflict of the Deployment does not hide that the Service is rejected, and the Service is retried.
func TestAllRejectionsAreNamed(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.Expect(f.client.Create(f.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: f.namespace}, Spec: otherDeploymentSpec(),
	})).To(Succeed())
	f.reconciler = f.newReconciler(f.failingApply(func(int) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no Services today"}}
	}))
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(err).To(MatchError("no Services today"))
	ready := f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	f.Expect(ready.Message).To(And(ContainSubstring("Deployment cow already exists"), HaveSuffix("; no Services today")))
}

// The API server accepts 32,768 bytes in the message of a condition: with more, the status could never be written.
func TestLongMessagesAreShortened(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.reconciler = f.newReconciler(f.failingApply(func(int) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: strings.Repeat("ab", 20_000)}}
	}))
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(err).To(MatchError(HavePrefix("abab")))
	ready := f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	f.Expect(len(ready.Message)).To(BeNumerically("<=", maxConditionMessage))
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
	f := newTestEnv(t)
	f.reconciler = f.newReconciler(f.failingApply(func(int) error { panic("a bad object") }))
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	f.Expect(func() { _, _ = f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")}) }).To(PanicWith("a bad object"))
}
