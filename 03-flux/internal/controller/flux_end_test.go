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
	for name, says := range map[string]func(*v1alpha1.FluxSetupStatus){"complete": saysSucceeded, "failed": saysCommandFailed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxWorld(t)
			w.start(withTTL(60))
			w.say(says)
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
			w.say(saysNothingLeft)
			flux := w.flux()
			w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
			flux.Status.Conditions, end.Status.Conditions = nil, nil
			w.Expect(flux.Status).To(Equal(end.Status), "how it ended stays")
			w.expectRest()
		})
	}
}

// The latch is written first, and only the next pass, which that write wakes, takes anything away.
func TestTTLOfZero(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start(withTTL(0))
	w.say(saysSucceeded)
	w.Expect(w.setup().Spec.Suspend).To(BeFalse())
	w.expectOver(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.reconcile()
	w.Expect(w.setup().Spec.Suspend).To(BeTrue())
	w.say(saysNothingLeft)
	w.expectOver(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.expectRest()
}

func TestTTLMayBeChangedAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start()
	w.say(saysSucceeded)
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

	// What has gone does not come back.
	w.change(withTTL(7200))
	w.change(func(s *v1alpha1.FluxSpec) { s.TTLSecondsAfterFinished = nil })
	w.Expect(w.setup().Spec.Suspend).To(BeTrue())
	w.expectOver(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.expectRest()
}

// Whatever the cache knows, a Flux that is over begins nothing, and stays as it ended.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, stale := range map[string]bool{"cache up to date": false, "cache behind": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxWorld(t)
			if stale {
				// A cache from before the first pass: no FluxSetup, no status.
				flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(withTTL(0))}
				w.Expect(w.client.Create(w.ctx, flux)).To(Succeed())
				w.freeze()
			}
			old := w.reconciler
			w.thaw()
			if !stale {
				w.create(withTTL(0))
			}
			w.reconcile()
			w.begin()
			w.say(saysSucceeded)
			w.reconcile()
			w.say(saysNothingLeft)
			if stale {
				w.reconciler = old
			}
			w.Expect(w.client.Delete(w.ctx, w.setup())).To(Succeed())
			w.recorded()
			w.expectNoSetup()
			w.expectNoSetup()
			flux := w.expectOver(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
			w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonSetupLost)
			w.Expect(w.recorded()).To(BeEmpty(), "that is no news any more")
		})
	}
}

// Somebody deletes the FluxSetup: at whatever moment, that is the end, and no other is ever made.
func TestSetupLost(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*fluxWorld){
		"made":        func(*fluxWorld) {},
		"launched":    func(w *fluxWorld) { w.launch() },
		"configured":  func(w *fluxWorld) { w.launch(); w.say(saysConfigured) },
		"running":     func(w *fluxWorld) { w.begin() },
		"backing off": func(w *fluxWorld) { w.begin(); w.say(saysCommandFailed) },
		"restarting":  func(w *fluxWorld) { w.begin(); w.sayAndRestart(saysCommandFailed) },
		"restarted":   func(w *fluxWorld) { w.begin(); w.sayAndRestart(saysCommandFailed); w.begin() },
		"suspended":   func(w *fluxWorld) { w.change(isSuspended); w.say(saysNothingLeft) },
		"the end not seen": func(w *fluxWorld) {
			w.begin()
			w.whisper(saysSucceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxWorld(t)
			w.create(withRestarts(5), withTTL(0))
			before(w)
			restarts := w.flux().Status.Restarts
			w.recorded()
			w.Expect(w.client.Delete(w.ctx, w.setup())).To(Succeed())
			w.reconcile()
			flux := w.expectOver(v1alpha1.ConditionFailed, v1alpha1.ReasonSetupLost)
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

// The FluxSetup is gone, and somebody has made one of its name: it is not ours, even if it says so.
func TestSetupLostToAnother(t *testing.T) {
	t.Parallel()
	for name, owned := range map[string]bool{"foreign": false, "owned by the Flux": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxWorld(t)
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
			flux := w.expectOver(v1alpha1.ConditionFailed, v1alpha1.ReasonSetupLost)
			w.Expect(flux.Status.SetupRef.UID).To(Equal(string(ours.UID)))
			w.clock.Step(time.Hour)
			w.expectRest()
			w.Expect(w.setup()).To(Equal(before), "not a field of it changed")
		})
	}
}

// Somebody deletes the FluxSetup, and it is held for a while: nothing is written to it, and it is not yet lost.
func TestSetupThatIsGoing(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start(withRestarts(1))
	setup := w.setup()
	setup.Finalizers = []string{"example.com/hold"}
	w.Expect(w.client.Update(w.ctx, setup)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, setup)).To(Succeed())
	w.say(saysCommandFailed)
	w.change(isSuspended)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(1)))
	w.Expect(w.setup().Spec.Suspend).To(BeFalse())
	w.Expect(ended(w.flux())).To(BeFalse())
	w.expectRest()

	setup = w.setup()
	setup.Finalizers = nil
	w.Expect(w.client.Update(w.ctx, setup, client.FieldOwner("someone"))).To(Succeed())
	w.reconcile()
	w.expectOver(v1alpha1.ConditionFailed, v1alpha1.ReasonSetupLost)
}
