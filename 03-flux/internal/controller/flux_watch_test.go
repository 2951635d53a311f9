package controller

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// newEmptySetupTestEnv returns a setupTestEnv without a Flux and a FluxSetup. Both controllers may run in it, and the
// test simulates the other controllers.
func newEmptySetupTestEnv(t *testing.T) *setupTestEnv {
	t.Helper()
	b := &setupTestEnv{testEnv: newTestEnv(t), t: t}
	b.clock.SetTime(time.Now().Truncate(time.Second))
	b.reconciler = b.newReconciler(b.client)
	return b
}

// manageBoth runs both controllers, each with its own manager, until the end of the test. Their users have only the
// permissions of config/rbac.
func manageBoth(b *setupTestEnv) (fluxUser, setupUser string) {
	b.t.Helper()
	setupUser = b.manage()
	fluxUser = "flux-" + setupUser
	b.Expect(b.client.Create(b.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: fluxUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: setupUser},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fluxUser}},
	})).To(Succeed())
	mgr := b.newManager(fluxUser)
	reconciler := NewFluxReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("flux-controller"), clock.RealClock{})
	b.Expect(reconciler.SetupWithManager(b.ctx, mgr, controller.Options{MaxConcurrentReconciles: 2})).To(Succeed())
	b.startManager(mgr)
	return fluxUser, setupUser
}

// waitForReason waits until a condition of the Flux has a reason.
func waitForReason(b *setupTestEnv, kind, reason string) {
	b.t.Helper()
	b.Eventually(func() string {
		return conditionOf(fetch[v1alpha1.Flux](b).Status.Conditions, kind).Reason
	}, watchTimeout).Should(Equal(reason), kind)
}

// From the creation of a Flux to its end both controllers send at most 17 writes, apart from readiness. In steady state
// they send none. The write of the end is an event itself: a TTL of 0 needs no other one.
func TestWriteBudgetOfBothControllers(t *testing.T) {
	b := newEmptySetupTestEnv(t)
	fluxUser, setupUser := manageBoth(b)
	start := time.Now()
	b.makeFlux(fluxOf(4))
	waitForReason(b, v1alpha1.ConditionSetupReady, v1alpha1.ReasonConfigured)
	b.startPods()
	for rank := 3; rank >= 0; rank-- {
		b.ready(rank)
	}
	waitForReason(b, v1alpha1.ConditionRunning, v1alpha1.ReasonQuorumReached)
	b.terminate(0, 0, "")
	b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	waitForReason(b, v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)

	b.Eventually(func() map[string]int { return b.writes(fluxUser) }, watchTimeout).Should(
		HaveKeyWithValue("create events/", 2), "Running and CommandSucceeded")
	seconds := int(time.Since(start).Seconds()) + 1
	others, statuses := 0, 0
	for _, user := range []string{fluxUser, setupUser} {
		for what, n := range b.writes(user) {
			if strings.HasSuffix(what, "/status") {
				statuses += n
			} else {
				others += n
			}
		}
	}
	b.Expect(others).To(Equal(9), "FluxSetup, two launch records, Secret, ConfigMap, Service, Job, two Events")
	b.Expect(statuses).To(BeNumerically("<=", 8+2*seconds), "4 of each, and for readiness one a second for each object")
	t.Logf("%d writes in %d s", others+statuses, seconds)
	before := []map[string]int{b.writes(fluxUser), b.writes(setupUser)}
	b.Consistently(func() []map[string]int {
		return []map[string]int{b.writes(fluxUser), b.writes(setupUser)}
	}, 2*time.Second, 100*time.Millisecond).Should(Equal(before), "in steady state")

	flux := fetch[v1alpha1.Flux](b)
	flux.Spec.TTLSecondsAfterFinished = new(int32(0))
	b.Expect(b.client.Update(b.ctx, flux)).To(Succeed())
	b.Eventually(func() bool { return b.setup().Spec.Suspend }, watchTimeout).Should(BeTrue())
}

func TestTTLOfZeroNeedsNoOtherEvent(t *testing.T) {
	b := newEmptySetupTestEnv(t)
	manageBoth(b)
	spec := fluxOf(1)
	spec.TTLSecondsAfterFinished = new(int32(0))
	b.makeFlux(spec)
	waitForReason(b, v1alpha1.ConditionSetupReady, v1alpha1.ReasonConfigured)
	b.startPods()
	b.ready(0)
	b.terminate(0, 0, "")
	b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.Eventually(func() bool { return b.setup().Spec.Suspend }, watchTimeout).Should(BeTrue())
	waitForReason(b, v1alpha1.ConditionComplete, v1alpha1.ReasonCommandSucceeded)
}

// The deletion of a FluxSetup triggers a reconciliation of the Flux of its name, whether the Flux owns it or not.
func TestDeletionOfAFluxSetupTriggersItsFlux(t *testing.T) {
	b := newEmptySetupTestEnv(t)
	other := firstSetup(&v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "bees", Namespace: b.namespace}, Spec: fluxOf(1)})
	other.OwnerReferences = nil
	b.Expect(b.client.Create(b.ctx, other)).To(Succeed())
	manageBoth(b)
	b.makeFlux(fluxOf(1))
	waitForReason(b, v1alpha1.ConditionSetupReady, v1alpha1.ReasonNameConflict)
	b.Expect(b.client.Delete(b.ctx, other)).To(Succeed())
	waitForReason(b, v1alpha1.ConditionSetupReady, v1alpha1.ReasonConfigured)
	b.Expect(b.client.Delete(b.ctx, b.setup())).To(Succeed())
	waitForReason(b, v1alpha1.ConditionFailed, v1alpha1.ReasonSetupLost)
}
