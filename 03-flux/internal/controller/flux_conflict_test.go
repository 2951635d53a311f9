package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// foreign makes a FluxSetup that is not the Flux's.
func (w *fluxWorld) foreign(owners ...metav1.OwnerReference) *v1alpha1.FluxSetup {
	return w.impostor(v1alpha1.FluxSpec{Image: "foreign", Command: []string{"x"}}, owners...)
}

// impostor makes a FluxSetup that is not the Flux's, with a spec like that of one.
func (w *fluxWorld) impostor(spec v1alpha1.FluxSpec, owners ...metav1.OwnerReference) *v1alpha1.FluxSetup {
	setup := firstSetup(fluxWith(spec))
	setup.Namespace, setup.OwnerReferences = w.namespace, owners
	w.Expect(w.client.Create(w.ctx, setup)).To(Succeed())
	return w.setup()
}

// before runs an interruption between the decision to apply a FluxSetup and the request, once.
func (w *fluxWorld) before(interruption func()) {
	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	w.use(interceptor.NewClient(withWatch, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			interruption()
			interruption = func() {}
			return c.Apply(ctx, obj, opts...)
		},
	}))
}

func TestNameConflictOfAFluxSetup(t *testing.T) {
	t.Parallel()
	for name, owners := range map[string][]metav1.OwnerReference{
		"made by hand":   nil,
		"somebody's":     {{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: new(true)}},
		"another Flux's": {{APIVersion: "flux-framework.org/v1alpha1", Kind: "Flux", Name: "other", UID: "x", Controller: new(true)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxWorld(t)
			foreign := w.foreign(owners...)
			flux := w.create()
			w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			w.Expect(flux.Status.SetupRef).To(BeNil())
			w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning NameConflict FluxSetup job exists")))
			w.expectRest()

			// Nor does a change to the Flux touch it, nor what the other FluxSetup says of itself.
			w.change(isSuspended)
			w.change(isResumed)
			w.Expect(w.setup()).To(Equal(foreign), "not a field of it changed")
			w.say(saysSucceeded)
			w.Expect(ended(w.flux())).To(BeFalse())

			w.Expect(w.client.Delete(w.ctx, foreign)).To(Succeed())
			w.reconcile()
			w.Expect(metav1.IsControlledBy(w.setup(), w.flux())).To(BeTrue())
			w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonStarting)
		})
	}
}

// The Flux was deleted and made anew, faster than the garbage collector: no conflict, a moment's wait.
func TestFluxSetupOfAPredecessor(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.create(withRestarts(1))
	w.begin()
	w.recorded()
	w.Expect(w.client.Delete(w.ctx, w.flux())).To(Succeed())
	before := w.setup()
	flux := w.create()
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	w.Expect(flux.Status.SetupRef).To(BeNil())
	w.Expect(w.recorded()).To(BeEmpty())
	w.expectRest()
	w.Expect(w.setup()).To(Equal(before))

	w.Expect(w.client.Delete(w.ctx, before)).To(Succeed())
	w.reconcile()
	w.Expect(w.flux().Status.SetupRef.UID).To(Equal(string(w.setup().UID)))
	w.begin()
}

// A foreign FluxSetup came into being after the API server said that there is none, and before the apply.
func TestForeignFluxSetupIsNotSeizedInARace(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	var foreign *v1alpha1.FluxSetup
	w.before(func() { foreign = w.foreign() })
	flux := w.create()
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	w.Expect(flux.Status.SetupRef).To(BeNil())
	w.Expect(w.setup()).To(Equal(foreign), "not a field of it changed")
}

// The FluxSetup was ours when it was read, and by the time of the apply the name is a stranger's.
func TestForcedApplyDoesNotFallOnAnotherFluxSetup(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start()
	w.recorded()
	var foreign *v1alpha1.FluxSetup
	w.before(func() {
		w.Expect(w.client.Delete(w.ctx, w.setup())).To(Succeed())
		foreign = w.impostor(jobSpec()) // nothing of its spec is in the way
	})
	flux := w.flux()
	flux.Spec.Suspend = true
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	_, err := w.tryReconcile()
	w.Expect(err).To(HaveOccurred())
	w.Expect(foreign).NotTo(BeNil(), "the race never came")
	w.Expect(w.setup()).To(Equal(foreign), "not a field of it changed")
	w.Expect(w.recorded()).To(BeEmpty(), "the next pass will know better")
	w.reconcile()
	w.Expect(conditionOf(w.flux().Status.Conditions, v1alpha1.ConditionFailed).Reason).To(Equal(v1alpha1.ReasonSetupLost))
}

// A crash after the FluxSetup was made and before the status says so: it is found, and is the one.
func TestFluxSetupIsFoundAfterACrash(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.create()
	setup := w.setup()
	flux := w.flux()
	flux.Status = v1alpha1.FluxStatus{}
	w.Expect(w.client.Status().Update(w.ctx, flux)).To(Succeed())
	applied := w.setupWrites
	w.reconcile()
	w.Expect(w.flux().Status.SetupRef.UID).To(Equal(string(setup.UID)))
	w.Expect(w.setup()).To(Equal(setup))
	w.Expect(w.setupWrites).To(Equal(applied))
}

func TestRefusedFluxSetup(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	refused := apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("fluxsetups").GroupResource(), "job", context.Canceled)
	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	w.use(interceptor.NewClient(withWatch, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return refused
		},
	}))
	w.Expect(w.client.Create(w.ctx, &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(),
	})).To(Succeed())
	for range 2 {
		_, err = w.tryReconcile()
		w.Expect(err).To(MatchError(refused), "it is tried again")
		ready := w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
		w.Expect(ready.Message).To(Equal(refused.Error()))
	}
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning ApplyFailed")), "told once")

	w.thaw()
	w.reconcile()
	w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonStarting)

	// One that is there is not taken for lost, and what it says goes on counting.
	w.begin()
	w.use(interceptor.NewClient(withWatch, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return refused
		},
	}))
	flux := w.flux()
	flux.Spec.StartupTimeoutSeconds = 5
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	_, err = w.tryReconcile()
	w.Expect(err).To(MatchError(refused))
	flux = w.flux()
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	w.Expect(types.UID(flux.Status.SetupRef.UID)).To(Equal(w.setup().UID))
}

// The namespace is being deleted: that is no failure, and no error.
func TestNamespaceBeingDeleted(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.Expect(w.client.Create(w.ctx, &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(),
	})).To(Succeed())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	w.Expect(w.client.Delete(w.ctx, namespace)).To(Succeed())
	w.expectNoSetup()
	w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	w.Expect(w.recorded()).To(BeEmpty())
}

// A leader that was paused before its apply of a resume comes back after its successor has resumed and the user has
// suspended again.
func TestLateApplyOfADeposedLeader(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.create(isSuspended)
	w.say(saysNothingLeft)
	w.before(func() {
		deposed := w.reconciler
		w.thaw()
		w.reconcile()
		w.begin()
		w.change(isSuspended)
		w.say(saysNothingLeft)
		w.reconciler = deposed
	})
	flux := w.flux()
	flux.Spec.Suspend = false
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	_, err := w.tryReconcile()
	w.Expect(err).To(MatchError(apierrors.IsConflict, "Conflict"))
	w.Expect(w.setup().Spec.Suspend).To(BeTrue())
	w.thaw()
	w.expectRest()
	w.expect(w.flux(), v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
}

// Another client empties the ownerReferences of the FluxSetup: the uid says that it is the Flux's, which owns it again.
func TestFluxSetupWithoutItsOwnerIsOwnedAgain(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*fluxWorld){
		"running":  func(*fluxWorld) {},
		"complete": func(w *fluxWorld) { w.say(saysSucceeded) },
		"complete, TTL passed": func(w *fluxWorld) {
			w.say(saysSucceeded)
			w.change(withTTL(0))
			w.say(saysNothingLeft)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxWorld(t)
			w.start()
			before(w)
			setup, flux := w.setup(), w.flux()
			setup.OwnerReferences = nil
			w.Expect(w.client.Update(w.ctx, setup, client.FieldOwner("someone"))).To(Succeed())
			w.reconcile()
			w.Expect(metav1.IsControlledBy(w.setup(), flux)).To(BeTrue())
			w.Expect(w.setup().Spec).To(Equal(setup.Spec), "nothing else of it changed")
			w.Expect(w.flux().Status).To(Equal(flux.Status))
			w.expectRest()
		})
	}
}

// Another client sets a field of the FluxSetup that the spec of the Flux leaves unset.
func TestDeadlineSetByAnotherClientIsRemoved(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start()
	setup := w.setup()
	want := setup.Spec.DeepCopy()
	setup.Spec.ActiveDeadlineSeconds = new(int64(30))
	w.Expect(w.client.Update(w.ctx, setup, client.FieldOwner("someone"))).To(Succeed())
	w.reconcile()
	w.Expect(w.setup().Spec).To(Equal(*want))
	w.expectRest()
}
