package controller

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// staleClient is a client whose cache has not yet heard of any object of a kind.
func staleClient[O client.Object](f *testEnv) client.Client {
	withWatch, err := client.NewWithWatch(f.config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(withWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(O); ok {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}

// Another client created a Deployment of the same name after the cache said "absent" and before the apply.
func TestDeploymentOfTheSameNameIsNotAdoptedInARace(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	other := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: f.namespace},
		Spec:       otherDeploymentSpec(),
	}
	f.Expect(f.client.Create(f.ctx, other)).To(Succeed())

	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo"}))).To(Succeed())
	f.reconciler = f.newReconciler(staleClient[*appsv1.Deployment](f))
	_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(err).To(HaveOccurred(), "the cache may never have it, and then its deletion is no event: it is tried again")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	f.Expect(f.deployment()).To(Equal(other), "not a field of it changed")

	f.Expect(f.client.Delete(f.ctx, other)).To(Succeed())
	f.clock.Step(time.Minute)
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}

// Server-side apply sees no conflict where a Deployment that is not owned has, field for field, the values that ours would have.
// Nevertheless it is not adopted, because what is applied has a resourceVersion that no object has.
func TestDeploymentThatEqualsOursIsNotAdopted(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	twin := desiredDeployment(f.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo"}), serverImage)
	twin.OwnerReferences = nil
	f.Expect(f.client.Apply(f.ctx, twin, client.FieldOwner("someone"))).To(Succeed())
	other := f.deployment()

	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo"}))).To(Succeed())
	f.reconciler = f.newReconciler(staleClient[*appsv1.Deployment](f))
	_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(isStale(err)).To(BeTrue(), "%v", err)
	f.Expect(f.deployment()).To(Equal(other), "not a field of it changed")

	f.reconciler = f.newReconciler(f.client)
	f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	f.Expect(f.deployment()).To(Equal(other))
}

// A Service without a selector, for which its owner makes the EndpointSlices, has no field that ours would change.
func TestServiceWithoutSelectorIsNotAdopted(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.Expect(f.client.Create(f.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: f.namespace},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Name: "other", Port: 9000}}},
	})).To(Succeed())
	other := f.service()

	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	f.reconciler = f.newReconciler(staleClient[*corev1.Service](f))
	_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(isStale(err)).To(BeTrue(), "%v", err)
	f.Expect(f.service()).To(Equal(other), "not a field of it changed")
}

// The cache says that the Deployment is ours, and by the time of the apply another client's Deployment has the name.
func TestForcedApplyDoesNotFallOnAnotherObject(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	ours := f.deployment()
	f.Expect(f.client.Delete(f.ctx, ours)).To(Succeed())
	other := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: f.namespace},
		Spec:       otherDeploymentSpec(),
	}
	f.Expect(f.client.Create(f.ctx, other)).To(Succeed())

	withWatch, err := client.NewWithWatch(f.config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	f.reconciler = f.newReconciler(interceptor.NewClient(withWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if deployment, ok := obj.(*appsv1.Deployment); ok {
				ours.DeepCopyInto(deployment)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}))
	lolcow := f.get("cow")
	lolcow.Spec.Greeting = "Baa"
	f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
	_, err = f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
	f.Expect(isStale(err)).To(BeTrue(), "%v", err)
	f.Expect(f.deployment()).To(Equal(other), "not a field of it changed")
}

// While an apply is held up, another client removes the owner reference of the Deployment, as `kubectl delete --cascade=orphan` of the Lolcow
// does, or for himself. With the owner reference written back, the garbage collector deleted it with the Lolcow.
func TestForcedApplyTakesNothingBack(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(*appsv1.Deployment){
		"the owner is off":          func(d *appsv1.Deployment) { d.OwnerReferences = nil },
		"owner and labels are off":  func(d *appsv1.Deployment) { d.OwnerReferences, d.Labels = nil, nil },
		"its spec has changed only": func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTestEnv(t)
			f.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
			lolcow := f.get("cow")
			lolcow.Spec.Greeting = "Baa"
			f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
			var released *appsv1.Deployment
			f.reconciler = f.newReconciler(f.failingApply(func(int) error {
				if released == nil {
					released = f.deployment()
					release(released)
					f.Expect(f.client.Update(f.ctx, released)).To(Succeed())
				}
				return nil
			}))
			_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key("cow")})
			f.Expect(isStale(err)).To(BeTrue(), "%v", err)
			f.Expect(f.deployment().ResourceVersion).To(Equal(released.ResourceVersion), "not a field of it changed")
		})
	}
}

// The server's own text for a port that is taken is what asPortConflict depends on: see TestPortConflict….
func TestClassifyLetsPassingErrorsPass(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	for _, passing := range []error{
		apierrors.NewTimeoutError("busy", 1),
		apierrors.NewConflict(appsv1.Resource("deployments"), "cow", nil),
		apierrors.NewInternalError(context.DeadlineExceeded),
		context.DeadlineExceeded,
	} {
		err := classify("applying Deployment cow", passing)
		var rejected *rejectedError
		g.Expect(errors.As(err, &rejected)).To(BeFalse())
		g.Expect(err).To(MatchError(passing))
	}
	err := errors.Join(classify("applying Deployment cow", apierrors.NewForbidden(appsv1.Resource("deployments"), "cow", nil)), nameConflict("Service cow"))
	g.Expect(failureOf(err).reason).To(Equal(v1alpha1.ReasonApplyFailed), "the first rejection is the one reported")
	g.Expect(failureOf(err).message).To(ContainSubstring("Service cow already exists"), "and the others are named")
}

// denied is the API server's response where an admission webhook denied a request, with the status that the webhook chose.
func denied(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "f.example.com" denied the request: no`,
	}}
}

func TestDenialIsARejectionWhateverItsCode(t *testing.T) {
	t.Parallel()
	policy := apierrors.NewUnauthorized(`deployments.apps "cow" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`)
	for name, err := range map[string]error{
		"400": denied(http.StatusBadRequest, ""), "401": denied(http.StatusUnauthorized, ""), "406": denied(http.StatusNotAcceptable, ""),
		"409": denied(http.StatusConflict, metav1.StatusReasonConflict), "500": denied(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"a policy":        policy,
		"400, of another": &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest}},
		"403, of another": &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden}},
		"413, of another": &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusRequestEntityTooLarge}},
		"422, of another": &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity}},
	} {
		g := NewWithT(t)
		err := classify("applying Deployment cow", err)
		var rejected *rejectedError
		g.Expect(errors.As(err, &rejected)).To(BeTrue(), name)
		g.Expect(isStale(err)).To(BeFalse(), name)
		g.Expect(failureOf(err).reason).To(Equal(v1alpha1.ReasonApplyFailed), name)
	}
}
