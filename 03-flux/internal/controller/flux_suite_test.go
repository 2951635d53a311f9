package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// fluxTestEnv is a testEnv with one Flux, "job", and the Flux controller. The test simulates the FluxSetup controller:
// it writes what that controller would write.
type fluxTestEnv struct {
	*testEnv
	reconciler *FluxReconciler
	// statusWrites and setupWrites count the writes of the Flux controller since the start.
	statusWrites, setupWrites int
}

func newFluxTestEnv(t *testing.T) *fluxTestEnv {
	t.Helper()
	w := &fluxTestEnv{testEnv: newTestEnv(t)}
	w.use(w.counting(interceptor.Funcs{}))
	return w
}

// counting is a client that counts writes, and otherwise behaves as funcs define.
func (w *fluxTestEnv) counting(funcs interceptor.Funcs) client.Client {
	withWatch, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme, Mapper: w.client.RESTMapper()})
	w.Expect(err).NotTo(HaveOccurred())
	funcs.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		w.statusWrites++
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}
	if funcs.Apply == nil {
		funcs.Apply = func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			w.setupWrites++
			return c.Apply(ctx, obj, opts...)
		}
	}
	if funcs.Create == nil {
		funcs.Create = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			w.setupWrites++
			return c.Create(ctx, obj, opts...)
		}
	}
	return interceptor.NewClient(withWatch, funcs)
}

// freezeCache gives the test a reconciler whose cache no longer changes.
func (w *fluxTestEnv) freezeCache() { w.freezeCacheOf(true, true) }

func (w *fluxTestEnv) freezeCacheOf(fluxes, setups bool) {
	var flux v1alpha1.Flux
	var setup v1alpha1.FluxSetup
	noFlux := w.client.Get(w.ctx, w.key("job"), &flux)
	noSetup := w.client.Get(w.ctx, w.key("job"), &setup)
	w.use(w.counting(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			switch obj := obj.(type) {
			case *v1alpha1.Flux:
				if fluxes {
					flux.DeepCopyInto(obj)
					return noFlux
				}
			case *v1alpha1.FluxSetup:
				if setups {
					setup.DeepCopyInto(obj)
					return noSetup
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}))
}

// unfreezeCache gives the test a reconciler whose cache is up to date.
func (w *fluxTestEnv) unfreezeCache() { w.use(w.counting(interceptor.Funcs{})) }

// use gives the test a new reconciler with empty memory, whose cache is c.
func (w *fluxTestEnv) use(c client.Client) {
	w.reconciler = NewFluxReconciler(c, w.client, w.events, w.clock)
}

// jobSpec is a small job of four ranks.
func jobSpec(change ...func(*v1alpha1.FluxSpec)) v1alpha1.FluxSpec {
	s := v1alpha1.FluxSpec{Image: "example.com/flux:1", Command: []string{"hostname"}, Size: 4}
	for _, one := range change {
		one(&s)
	}
	return s
}

func withRestarts(n int32) func(*v1alpha1.FluxSpec) {
	return func(s *v1alpha1.FluxSpec) { s.MaxRestarts = n }
}

func isSuspended(s *v1alpha1.FluxSpec) { s.Suspend = true }
func isResumed(s *v1alpha1.FluxSpec)   { s.Suspend = false }

func withTTL(seconds int32) func(*v1alpha1.FluxSpec) {
	return func(s *v1alpha1.FluxSpec) { s.TTLSecondsAfterFinished = new(seconds) }
}

// create creates the Flux and reconciles once.
func (w *fluxTestEnv) create(change ...func(*v1alpha1.FluxSpec)) *v1alpha1.Flux {
	flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(change...)}
	w.Expect(w.client.Create(w.ctx, flux)).To(Succeed())
	w.reconcile()
	return w.flux()
}

// change changes the spec of the Flux and reconciles once.
func (w *fluxTestEnv) change(change func(*v1alpha1.FluxSpec)) *v1alpha1.Flux {
	flux := w.flux()
	change(&flux.Spec)
	w.Expect(w.client.Update(w.ctx, flux)).To(Succeed())
	w.reconcile()
	return w.flux()
}

func (w *fluxTestEnv) tryReconcile() (ctrl.Result, error) {
	return w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("job")})
}

func (w *fluxTestEnv) reconcile() ctrl.Result {
	result, err := w.tryReconcile()
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

func (w *fluxTestEnv) flux() *v1alpha1.Flux {
	var flux v1alpha1.Flux
	w.Expect(w.client.Get(w.ctx, w.key("job"), &flux)).To(Succeed())
	return &flux
}

func (w *fluxTestEnv) setup() *v1alpha1.FluxSetup {
	var setup v1alpha1.FluxSetup
	w.Expect(w.client.Get(w.ctx, w.key("job"), &setup)).To(Succeed())
	return &setup
}

// launch simulates the FluxSetup controller, which records the launch of the current attempt under its own field owner.
func (w *fluxTestEnv) launch() {
	setup := w.setup()
	setup.Spec.Launch = &v1alpha1.Launch{
		Attempt: setup.Spec.Attempt, Time: metav1.NewTime(w.clock.Now()),
	}
	w.Expect(w.client.Update(w.ctx, setup, client.FieldOwner("fluxsetup-launch"))).To(Succeed())
}

// report writes the FluxSetup's status for the current attempt, and reconciles the Flux once.
func (w *fluxTestEnv) report(change func(*v1alpha1.FluxSetupStatus)) ctrl.Result {
	w.reportOnly(change)
	return w.reconcile()
}

// reportAndRestart reports the failure of the current attempt, and reconciles the Flux after the back-off.
func (w *fluxTestEnv) reportAndRestart(change func(*v1alpha1.FluxSetupStatus)) {
	w.reportOnly(change)
	w.clock.Step(maxBackOff)
	w.reconcile()
}

// reportOnly writes the FluxSetup's status without a reconciliation.
func (w *fluxTestEnv) reportOnly(change func(*v1alpha1.FluxSetupStatus)) {
	setup := w.setup()
	if setup.Status.Attempt != setup.Spec.Attempt {
		setup.Status = v1alpha1.FluxSetupStatus{Attempt: setup.Spec.Attempt}
	}
	setup.Status.ObservedGeneration = setup.Generation
	change(&setup.Status)
	for i := range setup.Status.Conditions {
		setup.Status.Conditions[i].LastTransitionTime = metav1.NewTime(w.clock.Now())
	}
	w.Expect(w.client.Status().Update(w.ctx, setup)).To(Succeed())
}

func setSetupCondition(status *v1alpha1.FluxSetupStatus, kind string, value bool, reason, message string) {
	condition := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if value {
		condition.Status = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&status.Conditions, condition)
}

func setConfigured(status *v1alpha1.FluxSetupStatus) {
	setSetupCondition(status, v1alpha1.ConditionAccepted, true, v1alpha1.ReasonOwned, "it belongs to its Flux")
	setSetupCondition(status, v1alpha1.ConditionConfigured, true, v1alpha1.ReasonConfigured, "all is there")
	setSetupCondition(status, v1alpha1.ConditionQuorumReached, false, v1alpha1.ReasonStarting, "brokers are to come")
}

func setRunning(status *v1alpha1.FluxSetupStatus) {
	setConfigured(status)
	status.ReadyRanks, status.LeaderPod = 4, "job-0-abcde"
	setSetupCondition(status, v1alpha1.ConditionQuorumReached, true, v1alpha1.ReasonQuorumReached, "all have joined")
}

func setSucceeded(status *v1alpha1.FluxSetupStatus) {
	setRunning(status)
	status.ExitCode = new(int32(0))
	setSetupCondition(status, v1alpha1.ConditionComplete, true, v1alpha1.ReasonCommandSucceeded, "")
}

func setFailed(reason, message string, exitCode *int32) func(*v1alpha1.FluxSetupStatus) {
	return func(status *v1alpha1.FluxSetupStatus) {
		setConfigured(status)
		status.ExitCode = exitCode
		setSetupCondition(status, v1alpha1.ConditionFailed, true, reason, message)
	}
}

var setCommandFailed = setFailed(v1alpha1.ReasonCommandFailed, "the command ended with 3", new(int32(3)))

func setSuspending(status *v1alpha1.FluxSetupStatus) {
	setSetupCondition(status, v1alpha1.ConditionConfigured, false, v1alpha1.ReasonSuspending, "pods are to end")
}

func setCleared(status *v1alpha1.FluxSetupStatus) {
	status.ReadyRanks, status.LeaderPod = 0, ""
	setSetupCondition(status, v1alpha1.ConditionConfigured, false, v1alpha1.ReasonSuspended, "nothing is left")
}

// start creates the Flux and brings it to its quorum.
func (w *fluxTestEnv) start(change ...func(*v1alpha1.FluxSpec)) {
	w.create(change...)
	w.begin()
}

// begin brings the current attempt to its quorum.
func (w *fluxTestEnv) begin() {
	w.launch()
	w.report(setRunning)
	w.expect(w.flux(), v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}

// expect asserts status and reason of a condition, and that it is of the current generation.
func (w *fluxTestEnv) expect(flux *v1alpha1.Flux, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	condition := conditionOf(flux.Status.Conditions, kind)
	w.Expect(condition.Status).To(Equal(status), "%s: %s", kind, condition.Message)
	w.Expect(condition.Reason).To(Equal(reason), "%s: %s", kind, condition.Message)
	w.Expect(condition.ObservedGeneration).To(Equal(flux.Generation), kind)
	w.Expect(flux.Status.ObservedGeneration).To(Equal(flux.Generation))
	return condition
}

// expectEnded asserts that the Flux has ended in this way only, and that no condition says that it is active.
func (w *fluxTestEnv) expectEnded(kind, reason string) *v1alpha1.Flux {
	flux := w.flux()
	w.expect(flux, kind, metav1.ConditionTrue, reason)
	w.Expect(flux.Status.Conditions).To(HaveLen(5), "there is either Complete or Failed")
	w.expect(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonFinished)
	w.expect(flux, v1alpha1.ConditionRestarting, metav1.ConditionFalse, v1alpha1.ReasonNotRestarting)
	w.Expect(flux.Status.CompletionTime).NotTo(BeNil())
	w.Expect(flux.Status.ReadyRanks).To(Equal(int32(0)))
	return flux
}

// expectSteadyState asserts that reconciliations change nothing.
func (w *fluxTestEnv) expectSteadyState() {
	before, setup := w.flux(), w.setup()
	status, applied := w.statusWrites, w.setupWrites
	w.recorded()
	for range 3 {
		w.reconcile()
	}
	w.Expect(w.statusWrites).To(Equal(status), "writes of the status")
	w.Expect(w.setupWrites).To(Equal(applied), "writes of the FluxSetup")
	w.Expect(w.flux()).To(Equal(before))
	w.Expect(w.setup()).To(Equal(setup))
	w.Expect(w.recorded()).To(BeEmpty())
}

// expectNoSetup asserts that there is no FluxSetup, and that reconciliations create none.
func (w *fluxTestEnv) expectNoSetup() {
	w.reconcile()
	var all v1alpha1.FluxSetupList
	w.Expect(w.client.List(w.ctx, &all, client.InNamespace(w.namespace))).To(Succeed())
	w.Expect(all.Items).To(BeEmpty())
}
