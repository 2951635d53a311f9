package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

func TestFluxCreateToComplete(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)

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
	w.expectSteadyState()

	w.launch()
	w.reconcile()
	w.report(setConfigured)
	flux = w.flux()
	w.expect(flux, v1alpha1.ConditionSetupReady, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	w.Expect(flux.Status.StartTime.Time).To(BeTemporally("==", w.clock.Now()))
	w.Expect(w.recorded()).To(BeEmpty(), "starting is a condition, not an Event")
	w.expectSteadyState()

	w.report(setRunning)
	flux = w.flux()
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	w.Expect(flux.Status.ReadyRanks).To(Equal(int32(4)))
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal Running")))
	w.expectSteadyState()

	w.clock.Step(time.Minute)
	w.Expect(w.report(setSucceeded).RequeueAfter).To(BeZero(), "without a TTL there is nothing to wait for")
	flux = w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.Expect(*flux.Status.ExitCode).To(Equal(int32(0)))
	w.Expect(flux.Status.CompletionTime.Time).To(BeTemporally("==", w.clock.Now()))
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal CommandSucceeded")))
	w.expectSteadyState()

	w.Expect(w.statusWrites).To(Equal(4), "statuses, from create to Complete")
	w.Expect(w.setupWrites).To(Equal(1), "FluxSetups, from create to Complete")
}

func TestFluxFailure(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	w.recorded()
	output := strings.Repeat("line\n", 400)
	w.report(setFailed(v1alpha1.ReasonCommandFailed, "rank 0 ended with 139:\n"+output, new(int32(139))))
	flux := w.expectEnded(v1alpha1.ConditionFailed, v1alpha1.ReasonCommandFailed)
	w.Expect(*flux.Status.ExitCode).To(Equal(int32(139)))
	w.Expect(conditionOf(flux.Status.Conditions, v1alpha1.ConditionFailed).Message).To(HaveSuffix(output))
	w.Expect(w.recorded()).To(ConsistOf(And(HavePrefix("Warning CommandFailed rank 0 ended with 139"), HaveSuffix("…"))))
	w.expectSteadyState()
}

// What prevents brokers from starting is shown on the Flux, with its reason.
func TestFluxMirrorsWhatPreventsTheStart(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.create()
	w.launch()
	for _, reason := range []string{v1alpha1.ReasonNameConflict, v1alpha1.ReasonApplyFailed} {
		w.report(func(status *v1alpha1.FluxSetupStatus) {
			setConfigured(status)
			setSetupCondition(status, v1alpha1.ConditionConfigured, false, reason, "Service job: why not")
		})
		ready := w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, reason)
		w.Expect(ready.Message).To(Equal("Service job: why not"))
		w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionFalse, reason)
		w.Expect(w.recorded()).To(ConsistOf("Warning " + reason + " Service job: why not"))
		w.expectSteadyState()
	}
	w.report(setRunning)
	w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}

// The Flux controller ignores spec.launch, whatever the FluxSetup controller writes there.
func TestLaunchIsNeverTheFluxControllers(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withRestarts(1), withTTL(0))
	launch := w.setup().Spec.Launch
	w.Expect(launch).NotTo(BeNil())
	w.change(func(s *v1alpha1.FluxSpec) { s.StartupTimeoutSeconds = 77 })
	w.reportAndRestart(setCommandFailed)
	w.Expect(w.setup().Spec.Attempt).To(Equal(int32(2)))
	w.report(setCommandFailed)
	w.reconcile()

	setup := w.setup()
	w.Expect(setup.Spec.Suspend).To(BeTrue(), "everything else was written")
	w.Expect(setup.Spec.Launch).To(Equal(launch))
	owners := map[string]bool{}
	for _, entry := range setup.ManagedFields {
		owners[entry.Manager] = strings.Contains(entry.FieldsV1.GetRawString(), "f:launch")
	}
	w.Expect(owners).To(And(HaveKeyWithValue("flux-controller", false), HaveKeyWithValue("fluxsetup-launch", true)))
}

// Changes of the mutable fields of a running Flux reach the FluxSetup in one write. Nothing else of it changes.
func TestDeadlinesMayBeChangedWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
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
		w.expectSteadyState()
	}
}

// Readiness alone is written at most once a second. Other changes are written at once, together with readiness.
func TestFluxReadinessIsThrottled(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.create()
	w.launch()
	w.clock.Step(readinessInterval)
	w.report(setConfigured)
	ready := func(n int32) time.Duration {
		return w.report(func(status *v1alpha1.FluxSetupStatus) { status.ReadyRanks = n }).RequeueAfter
	}
	writes := w.statusWrites
	w.Expect(ready(1)).To(Equal(readinessInterval))
	w.clock.Step(readinessInterval / 4)
	w.Expect(ready(2)).To(Equal(readinessInterval * 3 / 4))
	w.Expect(w.flux().Status.ReadyRanks).To(Equal(int32(0)))
	w.Expect(w.statusWrites).To(Equal(writes))
	w.clock.Step(readinessInterval * 3 / 4)
	w.Expect(w.reconcile().RequeueAfter).To(BeZero())
	w.Expect(w.flux().Status.ReadyRanks).To(Equal(int32(2)))
	w.Expect(ready(3)).To(Equal(readinessInterval))
	w.Expect(w.report(setRunning).RequeueAfter).To(BeZero())
	w.Expect(w.flux().Status.ReadyRanks).To(Equal(int32(4)))
	w.Expect(w.statusWrites).To(Equal(writes + 2))
}

func TestFluxBeingDeletedIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
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

// Another controller's finalizer keeps a deleted Flux. Its work ends all the same, and does not start again.
func TestWorkEndsThoughAnotherFinalizerKeepsTheFlux(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start(withRestarts(3))
	flux := w.flux()
	flux.Finalizers = []string{"example.com/hold"}
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, flux)).To(Succeed())

	w.use(w.counting(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return apierrors.NewForbidden(v1alpha1.SchemeGroupVersion.WithResource("fluxsetups").GroupResource(), "job", errors.New("a policy keeps FluxSetups"))
		},
	}))
	_, err := w.tryReconcile()
	w.Expect(err).To(HaveOccurred(), "it is retried")
	running := w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonApplyFailed)
	w.Expect(running.Message).To(ContainSubstring("a policy keeps FluxSetups"))

	w.unfreezeCache()
	w.reconcile()
	w.Expect(w.client.Get(w.ctx, w.key("job"), &v1alpha1.FluxSetup{})).To(MatchError(apierrors.IsNotFound, "NotFound"))
	w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonDeleting)
	w.Expect(w.flux().Status.ReadyRanks).To(BeZero())
	version := w.flux().ResourceVersion
	w.expectNoSetup()
	w.Expect(w.flux().ResourceVersion).To(Equal(version))
}

// Foreground deletion and orphaning are left to the garbage collector.
func TestDeletionIsLeftToTheGarbageCollector(t *testing.T) {
	t.Parallel()
	for _, finalizer := range []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents} {
		t.Run(finalizer, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			w.start()
			flux := w.flux()
			flux.Finalizers = []string{"example.com/hold", finalizer}
			w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
			w.Expect(w.client.Delete(w.ctx, flux)).To(Succeed())
			w.reconcile()
			w.Expect(w.setup().DeletionTimestamp).To(BeNil())
		})
	}
}

// The garbage collector has orphaned the FluxSetup, and another controller's finalizer keeps the Flux: the running pods
// are not deleted, and the status does not report that they are.
func TestOrphanOfAKeptFluxIsNotReportedAsEnding(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	flux := w.flux()
	flux.Finalizers = []string{"example.com/hold"}
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, flux, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.reconcile()
	setup := w.setup()
	setup.OwnerReferences = nil
	w.Expect(w.client.Update(w.ctx, setup)).To(Succeed())
	flux = w.flux()
	flux.Finalizers = []string{"example.com/hold"}
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())

	w.reconcile()
	w.Expect(w.setup().DeletionTimestamp).To(BeNil())
	w.Expect(conditionOf(w.flux().Status.Conditions, v1alpha1.ConditionRunning).Reason).NotTo(Equal(v1alpha1.ReasonDeleting))
}

// The cache does not show yet that the Flux is being deleted: no FluxSetup is created, because it would be deleted at
// once.
func TestStaleCacheOfADeletedFlux(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec()}
	w.Expect(w.client.Create(w.ctx, flux)).To(Succeed())
	w.freezeCache()
	w.Expect(w.client.Delete(w.ctx, flux)).To(Succeed())
	_, err := w.tryReconcile()
	w.Expect(err).To(MatchError(errStale), "the queue retries until the cache is up to date")
	w.unfreezeCache()
	w.expectNoSetup()
}

// No Event reports a status that could not be written.
func TestEventsComeAfterTheWrite(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.start()
	w.recorded()
	broken := errors.New("no connection")
	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme, Mapper: w.client.RESTMapper()})
	w.Expect(err).NotTo(HaveOccurred())
	w.use(interceptor.NewClient(withWatch, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return broken
		},
	}))
	w.reportOnly(setSucceeded)
	_, err = w.tryReconcile()
	w.Expect(err).To(MatchError(broken))
	w.Expect(w.recorded()).To(BeEmpty())

	w.use(w.client)
	w.reconcile()
	w.expectEnded(v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Normal CommandSucceeded")))
}
