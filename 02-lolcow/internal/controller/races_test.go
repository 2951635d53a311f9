package controller

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// staleDeployments is a client whose cache has not yet heard of any Deployment.
func staleDeployments(w *world) client.Client {
	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(withWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*appsv1.Deployment); ok {
				return apierrors.NewNotFound(appsv1.Resource("deployments"), key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}

// A foreign Deployment came into being after the cache said "absent" and before the apply.
func TestForeignDeploymentIsNotSeizedInARace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: w.namespace},
		Spec:       foreignDeploymentSpec(),
	}
	w.Expect(w.client.Create(w.ctx, foreign)).To(Succeed())

	w.reconciler = w.newReconciler(staleDeployments(w))
	lolcow := w.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	w.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	w.Expect(w.deployment()).To(Equal(foreign), "not a field of it changed")
}

// The known residue: server-side apply sees no conflict where a foreign Deployment has, field for
// field, the values that ours would have. It is taken over, and nothing that its owner set is changed.
func TestForeignDeploymentThatEqualsOursIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	twin := desiredDeployment(w.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo"}), serverImage)
	twin.OwnerReferences = nil
	w.Expect(w.client.Apply(w.ctx, twin, client.FieldOwner("someone"))).To(Succeed())
	foreign := w.deployment()

	w.reconciler = w.newReconciler(staleDeployments(w))
	lolcow := w.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	taken := w.deployment()
	w.Expect(taken.UID).To(Equal(foreign.UID))
	w.Expect(metav1.IsControlledBy(taken, lolcow)).To(BeTrue())
	w.Expect(taken.Spec).To(Equal(foreign.Spec))
}

// The cache says that the Deployment is ours, and by the time of the apply the name is a stranger's.
func TestForcedApplyDoesNotFallOnAnotherObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
	ours := w.deployment()
	w.Expect(w.client.Delete(w.ctx, ours)).To(Succeed())
	foreign := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: w.namespace},
		Spec:       foreignDeploymentSpec(),
	}
	w.Expect(w.client.Create(w.ctx, foreign)).To(Succeed())

	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	w.reconciler = w.newReconciler(interceptor.NewClient(withWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if deployment, ok := obj.(*appsv1.Deployment); ok {
				ours.DeepCopyInto(deployment)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}))
	lolcow := w.get("cow")
	lolcow.Spec.Greeting = "Baa"
	w.Expect(w.client.Update(w.ctx, lolcow)).To(Succeed())
	_, err = w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("cow")})
	w.Expect(err).To(HaveOccurred())
	w.Expect(w.deployment()).To(Equal(foreign), "not a field of it changed")
}

// The server's own text for a port that is taken is what isPortTaken depends on: see TestPortConflict….
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
	g.Expect(failureOf(err).message).To(ContainSubstring("Service cow exists"), "and the others are named")
}
