package controller

import (
	"context"
	"sync"
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

// createNotOwned creates a FluxSetup that the Flux does not own.
func (w *fluxTestEnv) createNotOwned(owners ...metav1.OwnerReference) *v1alpha1.FluxSetup {
	return w.createNotOwnedWith(v1alpha1.FluxSpec{Image: "other", Command: []string{"x"}}, owners...)
}

// createNotOwnedWith creates a FluxSetup that the Flux does not own, with the given spec.
func (w *fluxTestEnv) createNotOwnedWith(spec v1alpha1.FluxSpec, owners ...metav1.OwnerReference) *v1alpha1.FluxSetup {
	setup := firstSetup(fluxWith(spec))
	setup.Namespace, setup.OwnerReferences = w.namespace, owners
	w.Expect(w.client.Create(w.ctx, setup)).To(Succeed())
	return w.setup()
}

// before runs a function once, between the decision to write a FluxSetup and the request.
func (w *fluxTestEnv) before(interruption func()) {
	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme, Mapper: w.client.RESTMapper()})
	w.Expect(err).NotTo(HaveOccurred())
	var interrupt sync.Once
	w.use(interceptor.NewClient(withWatch, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			interrupt.Do(interruption)
			return c.Apply(ctx, obj, opts...)
		},
	}))
}

func TestNameConflictOfAFluxSetup(t *testing.T) {
	t.Parallel()
	for name, owners := range map[string][]metav1.OwnerReference{
		"made by hand":   nil,
		"another kind's": {{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: new(true)}},
		"another Flux's": {{APIVersion: "flux-framework.org/v1alpha1", Kind: "Flux", Name: "other", UID: "x", Controller: new(true)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			other := w.createNotOwned(owners...)
			flux := w.create()
			w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			w.Expect(flux.Status.SetupRef).To(BeNil())
			w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning NameConflict FluxSetup job already exists")))
			w.expectSteadyState()

			// A change of the Flux does not change it either, nor does its own status.
			w.change(isSuspended)
			w.change(isResumed)
			w.Expect(w.setup()).To(Equal(other), "it is unchanged")
			w.report(setSucceeded)
			w.Expect(ended(w.flux())).To(BeFalse())

			w.Expect(w.client.Delete(w.ctx, other)).To(Succeed())
			w.reconcile()
			w.Expect(metav1.IsControlledBy(w.setup(), w.flux())).To(BeTrue())
			w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonStarting)
		})
	}
}

// The Flux was deleted and created again before the garbage collector deleted the FluxSetup. That is not a conflict:
// the Flux waits.
func TestFluxSetupOfAPredecessor(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
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
	w.expectSteadyState()
	w.Expect(w.setup()).To(Equal(before))

	w.Expect(w.client.Delete(w.ctx, before)).To(Succeed())
	w.reconcile()
	w.Expect(w.flux().Status.SetupRef.UID).To(Equal(string(w.setup().UID)))
	w.begin()
}

// Another client creates a FluxSetup after the API server reported that there is none, and before the apply.
func TestFluxSetupNotOwnedIsNotAdoptedInARace(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	var other *v1alpha1.FluxSetup
	w.before(func() { other = w.createNotOwned() })
	w.Expect(w.client.Create(w.ctx, &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(),
	})).To(Succeed())
	_, _ = w.tryReconcile()
	const message = "FluxSetup job already exists and has a different owner, or none: it is left unchanged"
	w.Expect(conditionOf(w.flux().Status.Conditions, v1alpha1.ConditionSetupReady).Message).To(Equal(message))
	w.reconcile()
	flux := w.flux()
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	w.Expect(conditionOf(flux.Status.Conditions, v1alpha1.ConditionSetupReady).Message).To(Equal(message), "the text is the same once it is read")
	w.Expect(flux.Status.SetupRef).To(BeNil())
	w.Expect(w.setup()).To(Equal(other), "it is unchanged")
}

// The Flux owned the FluxSetup when it was read. At the time of the apply another object has the name.
func TestForcedApplyDoesNotChangeAnotherFluxSetup(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	w.recorded()
	var other *v1alpha1.FluxSetup
	w.before(func() {
		w.Expect(w.client.Delete(w.ctx, w.setup())).To(Succeed())
		other = w.createNotOwnedWith(jobSpec()) // its spec does not conflict with ours
	})
	flux := w.flux()
	flux.Spec.Suspend = true
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	_, err := w.tryReconcile()
	w.Expect(err).To(HaveOccurred())
	w.Expect(other).NotTo(BeNil(), "the interruption did not happen")
	w.Expect(w.setup()).To(Equal(other), "it is unchanged")
	w.Expect(w.recorded()).To(BeEmpty(), "the next reconciliation reports it")
	w.reconcile()
	w.Expect(conditionOf(w.flux().Status.Conditions, v1alpha1.ConditionFailed).Reason).To(Equal(v1alpha1.ReasonSetupLost))
}

// A crash between the creation of the FluxSetup and the status write: the existing FluxSetup is found and used.
func TestFluxSetupIsFoundAfterACrash(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
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

func TestRejectedFluxSetup(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	rejected := apierrors.NewForbidden(v1alpha1.SchemeGroupVersion.WithResource("fluxsetups").GroupResource(), "job", context.Canceled)
	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme, Mapper: w.client.RESTMapper()})
	w.Expect(err).NotTo(HaveOccurred())
	w.use(interceptor.NewClient(withWatch, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return rejected
		},
	}))
	w.Expect(w.client.Create(w.ctx, &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(),
	})).To(Succeed())
	for range 2 {
		_, err = w.tryReconcile()
		w.Expect(err).To(MatchError(rejected), "it is retried")
		ready := w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
		w.Expect(ready.Message).To(Equal(rejected.Error()))
	}
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning ApplyFailed")), "reported once")

	w.unfreezeCache()
	w.reconcile()
	w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonStarting)

	// An existing FluxSetup does not count as lost, and its status still counts.
	w.begin()
	w.use(interceptor.NewClient(withWatch, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return rejected
		},
	}))
	flux := w.flux()
	flux.Spec.StartupTimeoutSeconds = 5
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	_, err = w.tryReconcile()
	w.Expect(err).To(MatchError(rejected))
	flux = w.flux()
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	w.Expect(types.UID(flux.Status.SetupRef.UID)).To(Equal(w.setup().UID))
}

// The namespace is being deleted: that is neither a failure nor an error.
func TestNamespaceBeingDeleted(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.Expect(w.client.Create(w.ctx, &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(),
	})).To(Succeed())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	w.Expect(w.client.Delete(w.ctx, namespace)).To(Succeed())
	w.expectNoSetup()
	w.Expect(w.flux().Status.Conditions).To(BeEmpty(), "what it would be reported in is deleted too")
	w.Expect(w.recorded()).To(BeEmpty())
}

// The replica that is the leader is paused before its apply of a resume. It continues after its successor has resumed the
// Flux and the user has suspended it again.
func TestLateApplyOfAFormerLeader(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.create(isSuspended)
	w.report(setCleared)
	w.before(func() {
		former := w.reconciler
		w.unfreezeCache()
		w.reconcile()
		w.begin()
		w.change(isSuspended)
		w.report(setCleared)
		w.reconciler = former
	})
	flux := w.flux()
	flux.Spec.Suspend = false
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	_, err := w.tryReconcile()
	w.Expect(err).To(MatchError(apierrors.IsConflict, "Conflict"))
	w.Expect(w.setup().Spec.Suspend).To(BeTrue())
	w.unfreezeCache()
	w.expectSteadyState()
	w.expect(w.flux(), v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
}

// The replica that is the leader is paused before it creates the FluxSetup. It continues after its successor has created
// one: its request does not change the existing one.
func TestLateFirstWriteOfAFormerLeader(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*fluxTestEnv){
		"suspended since": func(w *fluxTestEnv) {
			w.reconcile()
			w.begin()
			w.change(isSuspended)
			w.report(setCleared)
		},
		"for a Flux that was deleted and created again": func(w *fluxTestEnv) {
			w.Expect(w.client.Delete(w.ctx, w.flux())).To(Succeed())
			w.create()
			w.begin()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			var setup *v1alpha1.FluxSetup
			w.before(func() {
				former := w.reconciler
				w.unfreezeCache()
				meanwhile(w)
				setup, w.reconciler = w.setup(), former
			})
			w.Expect(w.client.Create(w.ctx, &v1alpha1.Flux{
				ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(),
			})).To(Succeed())
			_, err := w.tryReconcile()
			w.Expect(w.setup()).To(Equal(setup), "it is unchanged")
			w.Expect(isStale(err)).To(BeTrue(), "%v", err)
			w.unfreezeCache()
			w.expectSteadyState()
		})
	}
}

// Fields of the creation are owned in the same way as fields of later applies: if the user removes the deadline, it is
// removed.
func TestDeadlineOfTheCreationIsRemoved(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(func(s *v1alpha1.FluxSpec) { s.ActiveDeadlineSeconds = new(int64(30)) })
	w.Expect(w.setup().Spec.ActiveDeadlineSeconds).To(HaveValue(BeEquivalentTo(30)))
	w.change(func(s *v1alpha1.FluxSpec) { s.ActiveDeadlineSeconds = nil })
	w.Expect(w.setup().Spec.ActiveDeadlineSeconds).To(BeNil())
	w.expectSteadyState()
}

// Another client sets a field of the FluxSetup that the spec of the Flux leaves unset.
func TestDeadlineSetByAnotherClientIsRemoved(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	setup := w.setup()
	want := setup.Spec.DeepCopy()
	setup.Spec.ActiveDeadlineSeconds = new(int64(30))
	w.Expect(w.client.Update(w.ctx, setup, client.FieldOwner("another-client"))).To(Succeed())
	w.reconcile()
	w.Expect(w.setup().Spec).To(Equal(*want))
	w.expectSteadyState()
}
