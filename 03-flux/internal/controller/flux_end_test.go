package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

func TestTTL(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]func(*v1alpha1.FluxSetupStatus){"complete": setSucceeded, "failed": setCommandFailed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			w.start(withTTL(60))
			w.report(report)
			end := w.flux()
			w.Expect(ended(end)).To(BeTrue())
			w.Expect(w.reconcile().RequeueAfter).To(Equal(time.Minute))
			w.clock.Step(40 * time.Second)
			w.Expect(w.reconcile().RequeueAfter).To(Equal(20 * time.Second))
			w.Expect(w.setup().Spec.Suspend).To(BeFalse())

			w.clock.Step(20 * time.Second)
			w.Expect(w.reconcile().RequeueAfter).To(BeZero())
			w.Expect(w.setup().Spec.Suspend).To(BeTrue())
			w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)))
			w.report(setCleared)
			flux := w.flux()
			w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
			flux.Status.Conditions, end.Status.Conditions = nil, nil
			w.Expect(flux.Status).To(Equal(end.Status), "how it ended stays")
			w.expectSteadyState()
		})
	}
}

// The end is written first. That write triggers the next reconciliation, and only then the dependents are deleted.
func TestTTLOfZero(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withTTL(0))
	w.report(setSucceeded)
	w.Expect(w.setup().Spec.Suspend).To(BeFalse())
	w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.reconcile()
	w.Expect(w.setup().Spec.Suspend).To(BeTrue())
	w.report(setCleared)
	w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.expectSteadyState()
}

func TestTTLMayBeChangedAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	w.report(setSucceeded)
	w.Expect(w.reconcile().RequeueAfter).To(BeZero())

	w.clock.Step(time.Minute)
	flux := w.change(withTTL(90))
	w.Expect(flux.Status.ObservedGeneration).To(Equal(flux.Generation))
	w.Expect(w.reconcile().RequeueAfter).To(Equal(30 * time.Second))
	w.change(withTTL(3600))
	w.Expect(w.reconcile().RequeueAfter).To(Equal(59 * time.Minute))
	w.Expect(w.setup().Spec.Suspend).To(BeFalse())
	w.change(withTTL(1))
	w.Expect(w.setup().Spec.Suspend).To(BeTrue())

	// What was deleted is not created again.
	w.change(withTTL(7200))
	w.change(func(s *v1alpha1.FluxSpec) { s.TTLSecondsAfterFinished = nil })
	w.Expect(w.setup().Spec.Suspend).To(BeTrue())
	w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.expectSteadyState()
}

// Whatever the cache holds, a Flux that has ended starts nothing, and its end does not change.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, stale := range map[string]bool{"cache up to date": false, "cache behind": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			if stale {
				// A cache from before the first reconciliation: no FluxSetup, no status.
				flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(withTTL(0))}
				w.Expect(w.client.Create(w.ctx, flux)).To(Succeed())
				w.freezeCache()
			}
			old := w.reconciler
			w.unfreezeCache()
			if !stale {
				w.create(withTTL(0))
			}
			w.reconcile()
			w.begin()
			w.report(setSucceeded)
			w.reconcile()
			w.report(setCleared)
			if stale {
				w.reconciler = old
			}
			w.Expect(w.client.Delete(w.ctx, w.setup())).To(Succeed())
			w.recorded()
			w.expectNoSetup()
			w.expectNoSetup()
			flux := w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
			w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonSetupLost)
			w.Expect(w.recorded()).To(BeEmpty(), "it was reported before")
		})
	}
}

// Another client deletes the FluxSetup: the Flux ends, at whatever time that is, and no other FluxSetup is created.
func TestSetupLost(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*fluxTestEnv){
		"made":        func(*fluxTestEnv) {},
		"launched":    func(w *fluxTestEnv) { w.launch() },
		"configured":  func(w *fluxTestEnv) { w.launch(); w.report(setConfigured) },
		"running":     func(w *fluxTestEnv) { w.begin() },
		"backing off": func(w *fluxTestEnv) { w.begin(); w.report(setCommandFailed) },
		"restarting":  func(w *fluxTestEnv) { w.begin(); w.reportAndRestart(setCommandFailed) },
		"restarted":   func(w *fluxTestEnv) { w.begin(); w.reportAndRestart(setCommandFailed); w.begin() },
		"suspended":   func(w *fluxTestEnv) { w.change(isSuspended); w.report(setCleared) },
		"the end not seen": func(w *fluxTestEnv) {
			w.begin()
			w.reportOnly(setSucceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			w.create(withRestarts(5), withTTL(0))
			before(w)
			restarts := w.flux().Status.Restarts
			w.recorded()
			w.Expect(w.client.Delete(w.ctx, w.setup())).To(Succeed())
			w.reconcile()
			flux := w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonSetupLost)
			w.Expect(conditionOf(flux.Status.Conditions, v1alpha1.ConditionFailed).Message).To(ContainSubstring(flux.Status.SetupRef.UID))
			w.Expect(flux.Status.Restarts).To(Equal(restarts))
			w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning SetupLost")))
			writes := w.statusWrites
			w.expectNoSetup()
			w.Expect(w.statusWrites).To(Equal(writes))
			w.Expect(w.recorded()).To(BeEmpty())
		})
	}
}

// The FluxSetup was deleted, and another client has created one of its name. The Flux does not own it, even if its
// owner reference names the Flux.
func TestSetupLostToAnother(t *testing.T) {
	t.Parallel()
	for name, owned := range map[string]bool{"not owned": false, "owned by the Flux": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			w.start(withTTL(0))
			ours := w.setup()
			other := &v1alpha1.FluxSetup{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: ours.Spec}
			if owned {
				other.OwnerReferences = ours.OwnerReferences
			}
			w.Expect(w.client.Delete(w.ctx, ours)).To(Succeed())
			w.Expect(w.client.Create(w.ctx, other)).To(Succeed())
			before := w.setup()
			w.reconcile()
			flux := w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonSetupLost)
			w.Expect(flux.Status.SetupRef.UID).To(Equal(string(ours.UID)))
			w.clock.Step(time.Hour)
			w.expectSteadyState()
			w.Expect(w.setup()).To(Equal(before), "it is unchanged")
		})
	}
}

// Another client deletes the FluxSetup, and a finalizer keeps it: it is not written any more, and the Flux does not
// wait for its end, which it will not report.
func TestSetupBeingDeleted(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withRestarts(1))
	setup := w.setup()
	setup.Finalizers = []string{"example.com/hold"}
	w.Expect(w.client.Update(w.ctx, setup)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, setup)).To(Succeed())
	w.reconcile()
	w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonSetupLost)
	w.Expect(w.setup().Spec).To(Equal(setup.Spec))
	w.expectSteadyState()

	setup = w.setup()
	setup.Finalizers = nil
	w.Expect(w.client.Update(w.ctx, setup, client.FieldOwner("another-client"))).To(Succeed())
	version := w.flux().ResourceVersion
	w.reconcile()
	w.Expect(w.flux().ResourceVersion).To(Equal(version))
}
