package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

func TestFluxCreateToComplete(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)

	flux := w.create()
	setup := w.setup()
	w.Expect(metav1.IsControlledBy(setup, flux)).To(BeTrue(), "it is left to the garbage collector")
	w.Expect(setup.Spec.Attempt).To(Equal(int32(1)))
	w.Expect(*flux.Status.SetupRef).To(Equal(v1alpha1.SetupReference{Name: "job", UID: string(setup.UID)}))
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	w.expect(flux, v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonNotSuspended)
	w.expect(flux, v1alpha1.ConditionRestarting, metav1.ConditionFalse, v1alpha1.ReasonNotRestarting)
	w.Expect(flux.Status.ReadyRanks).To(Equal(int32(0)))
	w.expectRest()

	w.launch()
	w.reconcile()
	w.say(saysConfigured)
	flux = w.flux()
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	w.Expect(flux.Status.StartTime.Time).To(BeTemporally("==", w.clock.Now()))
	w.Expect(w.recorded()).To(BeEmpty(), "starting is a condition, not an Event")
	w.expectRest()

	w.say(saysRunning)
	flux = w.flux()
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	w.Expect(flux.Status.ReadyRanks).To(Equal(int32(4)))
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal Running")))
	w.expectRest()

	w.clock.Step(time.Minute)
	w.Expect(w.say(saysSucceeded).RequeueAfter).To(BeZero(), "without a TTL there is nothing more to come")
	flux = w.expectOver(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.Expect(*flux.Status.ExitCode).To(Equal(int32(0)))
	w.Expect(flux.Status.CompletionTime.Time).To(BeTemporally("==", w.clock.Now()))
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal CommandSucceeded")))
	w.expectRest()

	w.Expect(w.statusWrites).To(Equal(4), "statuses, from create to Complete")
	w.Expect(w.setupWrites).To(Equal(1), "FluxSetups, from create to Complete")
}

func TestFluxFailure(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start()
	w.recorded()
	output := strings.Repeat("line\n", 400)
	w.say(saysFailed(v1alpha1.ReasonCommandFailed, "rank 0 ended with 139:\n"+output, new(int32(139))))
	flux := w.expectOver(v1alpha1.ConditionFailed, v1alpha1.ReasonCommandFailed)
	w.Expect(*flux.Status.ExitCode).To(Equal(int32(139)))
	w.Expect(conditionOf(flux.Status.Conditions, v1alpha1.ConditionFailed).Message).To(HaveSuffix(output))
	w.Expect(w.recorded()).To(ConsistOf(And(HavePrefix("Warning CommandFailed rank 0 ended with 139"), HaveSuffix("…"))))
	w.expectRest()
}

// What keeps the brokers from starting is seen on the Flux, with its reason.
func TestFluxMirrorsWhatStandsInTheWay(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.create()
	w.launch()
	for _, reason := range []string{v1alpha1.ReasonNameConflict, v1alpha1.ReasonApplyFailed} {
		w.say(func(status *v1alpha1.FluxSetupStatus) {
			saysConfigured(status)
			saysThat(status, v1alpha1.ConditionConfigured, false, reason, "Service job: why not")
		})
		ready := w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, reason)
		w.Expect(ready.Message).To(Equal("Service job: why not"))
		w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionFalse, reason)
		w.Expect(w.recorded()).To(ConsistOf("Warning " + reason + " Service job: why not"))
		w.expectRest()
	}
	w.say(saysRunning)
	w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}

// The memory of the FluxSetup controller is no business of the Flux controller, whatever that writes.
func TestLaunchIsNeverTheFluxControllers(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start(withRestarts(1), withTTL(0))
	launch := w.setup().Spec.Launch
	w.Expect(launch).NotTo(BeNil())
	w.change(func(s *v1alpha1.FluxSpec) { s.StartupTimeoutSeconds = 77 })
	w.sayAndRestart(saysCommandFailed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
	w.say(saysCommandFailed)
	w.reconcile()

	setup := w.setup()
	w.Expect(setup.Spec.Suspend).To(BeTrue(), "all that it ever writes was written")
	w.Expect(setup.Spec.Launch).To(Equal(launch))
	owners := map[string]bool{}
	for _, entry := range setup.ManagedFields {
		owners[entry.Manager] = strings.Contains(entry.FieldsV1.GetRawString(), "f:launch")
	}
	w.Expect(owners).To(And(HaveKeyWithValue("flux-controller", false), HaveKeyWithValue("fluxsetup-launch", true)))
}

// What may be changed of a Flux while it runs reaches the FluxSetup, in one write, and nothing else of it changes.
func TestDeadlinesMayBeChangedWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start()
	for _, change := range []func(*v1alpha1.FluxSpec){
		func(s *v1alpha1.FluxSpec) { s.StartupTimeoutSeconds = 7 },
		func(s *v1alpha1.FluxSpec) { s.ActiveDeadlineSeconds = new(int64(60)) },
		func(s *v1alpha1.FluxSpec) { s.ActiveDeadlineSeconds = new(int64(30)) },
		func(s *v1alpha1.FluxSpec) { s.ActiveDeadlineSeconds = nil },
	} {
		want, writes := w.setup().Spec, w.setupWrites
		flux := w.change(change)
		want.StartupTimeoutSeconds, want.ActiveDeadlineSeconds = flux.Spec.StartupTimeoutSeconds, flux.Spec.ActiveDeadlineSeconds
		w.Expect(w.setup().Spec).To(Equal(want))
		w.Expect(w.setupWrites).To(Equal(writes + 1))
		w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
		w.expectRest()
	}
}

// Readiness alone is written once a second; what happens is written at once, and readiness with it.
func TestFluxReadinessIsPaced(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.create()
	w.launch()
	w.clock.Step(readinessPace)
	w.say(saysConfigured)
	ready := func(n int32) time.Duration {
		return w.say(func(status *v1alpha1.FluxSetupStatus) { status.ReadyRanks = n }).RequeueAfter
	}
	writes := w.statusWrites
	w.Expect(ready(1)).To(Equal(readinessPace))
	w.clock.Step(readinessPace / 4)
	w.Expect(ready(2)).To(Equal(readinessPace * 3 / 4))
	w.Expect(w.flux().Status.ReadyRanks).To(Equal(int32(0)))
	w.Expect(w.statusWrites).To(Equal(writes))
	w.clock.Step(readinessPace * 3 / 4)
	w.Expect(w.reconcile().RequeueAfter).To(BeZero())
	w.Expect(w.flux().Status.ReadyRanks).To(Equal(int32(2)))
	w.Expect(ready(3)).To(Equal(readinessPace))
	w.Expect(w.say(saysRunning).RequeueAfter).To(BeZero())
	w.Expect(w.flux().Status.ReadyRanks).To(Equal(int32(4)))
	w.Expect(w.statusWrites).To(Equal(writes + 2))
}

func TestFluxBeingDeletedIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	flux := &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace, Finalizers: []string{"example.com/hold"}},
		Spec:       jobSpec(),
	}
	w.Expect(w.client.Create(w.ctx, flux)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, flux)).To(Succeed())
	w.expectNoSetup()
	w.Expect(w.flux().Status).To(Equal(v1alpha1.FluxStatus{}))

	flux = w.flux()
	flux.Finalizers = nil
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	w.expectNoSetup()
}

// The cache does not know yet that the Flux is being deleted: no FluxSetup is made that would be removed at once.
func TestStaleCacheOfADeletedFlux(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec()}
	w.Expect(w.client.Create(w.ctx, flux)).To(Succeed())
	w.freeze()
	w.Expect(w.client.Delete(w.ctx, flux)).To(Succeed())
	_, err := w.tryReconcile()
	w.Expect(err).To(MatchError(errStale), "the queue tries again until the cache is current")
	w.thaw()
	w.expectNoSetup()
}

// No Event tells of what could not be written.
func TestEventsComeAfterTheWrite(t *testing.T) {
	t.Parallel()
	w := newFluxWorld(t)
	w.start()
	w.recorded()
	broken := errors.New("no connection")
	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	w.use(interceptor.NewClient(withWatch, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return broken
		},
	}))
	w.whisper(saysSucceeded)
	_, err = w.tryReconcile()
	w.Expect(err).To(MatchError(broken))
	w.Expect(w.recorded()).To(BeEmpty())

	w.use(w.client)
	w.reconcile()
	w.expectOver(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal CommandSucceeded")))
}
