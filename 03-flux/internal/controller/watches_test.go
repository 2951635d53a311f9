package controller

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/03-flux/api/v1alpha1"
)

const watchTimeout = 30 * time.Second

// What the cache keeps is enough for every decision that is based on it.
func TestTransformKeepsWhatDecisionsNeed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	setup := launchedSetup(fullFlux())
	job := desiredJob(setup)
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}
	reduced := reduceJob(g, job)
	g.Expect(roleOf(setup, reduced)).To(Equal(jobCurrent))
	g.Expect(started(reduced)).To(BeFalse())
	g.Expect(reduced.Annotations).To(HaveKeyWithValue(annotationConfigHash, clusterOf(setup).Hash()))
	changedJob := job.DeepCopy()
	changedJob.Annotations[annotationStarted] = "true"
	changedJob.Spec.Suspend, changedJob.Spec.Parallelism = new(false), new(int32(1))
	g.Expect(changed(setup, reduceJob(g, changedJob))).To(BeTrue())
	g.Expect(changed(setup, reduced)).To(BeFalse())
	retried := job.DeepCopy()
	retried.Spec.BackoffLimit = new(int32(6))
	g.Expect(changed(setup, reduceJob(g, retried))).To(BeTrue())
	g.Expect(jobResult(reduced)).NotTo(BeNil())
	g.Expect(reduced.Spec.ActiveDeadlineSeconds).To(Equal(job.Spec.ActiveDeadlineSeconds))
	g.Expect(reduced.Spec.Template.Spec.Containers).To(BeEmpty(), "the command may take some megabytes")

	pod := podOfJob(job, 3)
	pod.Annotations["another"] = "annotation"
	makeReady(pod)
	small := reducedPod(g, pod)
	g.Expect(rankOf(small)).To(Equal(int32(3)))
	g.Expect(isReady(small)).To(BeTrue())
	g.Expect(setupOfPod(small).Name).To(Equal("bees"))
	g.Expect(metav1.GetControllerOf(small)).To(Equal(metav1.GetControllerOf(pod)))
	g.Expect(small.Spec.Containers).To(BeEmpty())
	g.Expect(small.Annotations).NotTo(HaveKey("another"))

	other, err := transform(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bees", UID: "9"}, Data: map[string]string{"secret": "x"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.(*corev1.ConfigMap).UID).To(BeEquivalentTo("9"))
	g.Expect(other.(*corev1.ConfigMap).Data).To(BeEmpty())
}

func reduceJob(g *WithT, job *batchv1.Job) *batchv1.Job {
	object, err := transform(job.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	return object.(*batchv1.Job)
}

func reducedPod(g *WithT, pod *corev1.Pod) *corev1.Pod {
	object, err := transform(pod.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	return object.(*corev1.Pod)
}

// manage runs the controller of FluxSetup with its watches and its cache until the end of the test. Its user has only
// the permissions of config/rbac.
func (b *setupTestEnv) manage() (user string) {
	b.t.Helper()
	user = "operator-of-" + b.namespace
	b.grantRole(user)
	mgr := b.newManager(user)
	b.Expect(NewFluxSetupReconciler(mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{}).SetupWithManager(b.ctx, mgr, controller.Options{MaxConcurrentReconciles: 2})).To(Succeed())
	b.startManager(mgr)
	return user
}

// newManager is a manager that acts as the user, and whose cache is restricted to the test's namespace.
func (b *setupTestEnv) newManager(user string) ctrl.Manager {
	b.t.Helper()
	cacheOptions := CacheOptions()
	cacheOptions.DefaultNamespaces = map[string]cache.Config{b.namespace: {}}
	mgr, err := ctrl.NewManager(apiServer(b.t).addUser(b.t, user), ctrl.Options{
		Scheme:     scheme,
		Cache:      cacheOptions,
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Logger:     testr.New(b.t),
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	b.Expect(err).NotTo(HaveOccurred())
	return mgr
}

// startManager runs the manager until the end of the test.
func (b *setupTestEnv) startManager(mgr ctrl.Manager) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.ctx))
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			b.t.Errorf("the manager ended with: %v", err)
		}
	})
	b.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// becomes waits for a condition to be True.
func (b *setupTestEnv) becomes(kind string) {
	b.t.Helper()
	b.Eventually(func() *metav1.Condition {
		return trueCondition(b.setup().Status.Conditions, kind)
	}, watchTimeout).ShouldNot(BeNil(), kind)
}

// writes counts, by object, the writes of a user in the API server's audit log.
func (b *setupTestEnv) writes(user string) map[string]int {
	b.t.Helper()
	log, err := os.Open(apiServer(b.t).auditLog)
	b.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = log.Close() }()
	counts := map[string]int{}
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource string }
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.User.Username == user {
			counts[fmt.Sprintf("%s %s/%s", line.Verb, line.ObjectRef.Resource, line.ObjectRef.Subresource)]++
		}
	}
	return counts
}

// From the creation to the end there are six writes, four of the status, and at most one per second for readiness. In
// steady state there are none.
func TestWriteBudget(t *testing.T) {
	t.Parallel()
	const size = 20
	b := newSetupTestEnv(t, fluxOf(size))
	start := time.Now()
	user := b.manage()
	b.becomes(v1alpha1.ConditionConfigured)
	b.startPods()
	for rank := size - 1; rank >= 0; rank-- {
		b.ready(rank)
	}
	b.becomes(v1alpha1.ConditionQuorumReached)
	b.terminate(0, 0, "")
	b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.becomes(v1alpha1.ConditionComplete)
	seconds := int(time.Since(start).Seconds()) + 1

	var once map[string]int
	b.Eventually(func() map[string]int {
		once = b.writes(user)
		return once
	}, watchTimeout).Should(HaveKeyWithValue("patch fluxsetups/status", BeNumerically(">=", 3)))
	b.Expect(once["patch fluxsetups/status"]).To(BeNumerically("<=", 4+seconds))
	delete(once, "patch fluxsetups/status")
	b.Expect(once).To(Equal(map[string]int{
		"patch fluxsetups/": 1, "create secrets/": 1, "create configmaps/": 1, "patch services/": 1, "create jobs/": 1, "patch jobs/": 1,
	}))
	// A status can be read a moment before the audit log has its write.
	var before map[string]int
	b.Eventually(func() bool {
		last := before
		before = b.writes(user)
		return maps.Equal(last, before)
	}, watchTimeout, readinessInterval).Should(BeTrue())
	b.Consistently(func() map[string]int { return b.writes(user) }, 2*readinessInterval, readinessInterval/4).Should(Equal(before))
}

// The Job controller deletes the leader, and the pod no longer exists when a reconciliation lists pods. The end of the
// output is reported.
func TestWatchKeepsTheEndOfRankZero(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.manage()
	b.becomes(v1alpha1.ConditionConfigured)
	b.startPods()
	b.ready(1)
	b.ready(0)
	b.becomes(v1alpha1.ConditionQuorumReached)
	b.deletePod(1)
	b.terminate(1, 143, "")
	b.remove(1)
	b.clock.SetTime(time.Now())
	b.failJob()
	b.deletePod(0)
	b.terminate(0, 143, "node failure on bees-1-1")
	b.remove(0)
	b.becomes(v1alpha1.ConditionFailed)
	b.Expect(b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonBrokerFailed)).To(HaveSuffix("node failure on bees-1-1"))
}

// The Flux records its FluxSetup after the FluxSetup was observed: that triggers the launch.
func TestRecordOfTheFluxTriggersTheLaunch(t *testing.T) {
	t.Parallel()
	b := newEmptySetupTestEnv(t)
	b.flux = b.makeFlux(fluxOf(1))
	b.applySetup(firstSetup(b.flux))
	b.manage()
	b.Consistently(b.jobs, 2*time.Second, 100*time.Millisecond).Should(BeEmpty())
	b.recordSetup()
	b.becomes(v1alpha1.ConditionConfigured)
}

// A suspension deletes all dependents, including the Secret, which the operator can neither list nor watch.
func TestSuspendedUnderTheOperatorsRole(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.manage()
	b.becomes(v1alpha1.ConditionConfigured)
	b.suspend()
	b.Eventually(func() *metav1.Time { return b.job().DeletionTimestamp }, watchTimeout).ShouldNot(BeNil())
	b.collect()
	b.Eventually(func() *corev1.Service { return fetch[corev1.Service](b) }, watchTimeout).Should(BeNil())
	b.expectNothing()
}

// The deletion of an object that has the name of a dependent triggers a reconciliation.
func TestReleasedNameIsUsed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ConfigMap", "Service", "Job"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			other := notOwnedObjects(b)[kind]
			b.Expect(b.client.Create(b.ctx, other)).To(Succeed())
			b.manage()
			b.becomes(v1alpha1.ConditionAccepted)
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			b.Expect(b.client.Delete(b.ctx, other, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			b.becomes(v1alpha1.ConditionConfigured)
		})
	}
}
