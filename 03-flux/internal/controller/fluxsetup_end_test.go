package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// failJob simulates the Job controller after a pod has failed, and all others have ended.
func (b *setupTestEnv) failJob() {
	b.t.Helper()
	b.finishJob(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)
	b.finishJob(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
}

func TestCommandFails(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	b.terminate(0, 3, "the end of the output\n")
	version := b.reconcile().ResourceVersion
	b.clock.Step(time.Second)
	b.Expect(b.reconcile().ResourceVersion).NotTo(Equal(version), "there is one ready broker less")
	setup := b.setup()
	b.Expect(trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil(), "the Job controller decides")

	b.failJob()
	setup = b.reconcile()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonCommandFailed)
	b.Expect(message).To(Equal("rank 0 (pod " + b.pod(0).Name + ") ended with exit code 3: the end of the output"))
	b.Expect(setup.Status.ExitCode).To(HaveValue(Equal(int32(3))))
	b.Expect(setup.Status.ReadyRanks).To(BeZero())
	b.Expect(b.job().DeletionTimestamp).To(BeNil(), "pods and logs are kept")
	version = setup.ResourceVersion
	b.clock.Step(time.Hour)
	b.Expect(b.reconcile().ResourceVersion).To(Equal(version))
}

// A follower is deleted, and the Job controller deletes the leader. The watch has reported the leader's end and its
// output.
func TestFollowerLost(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	leader, follower := b.pod(0).Name, b.pod(1).Name
	b.deletePod(1)
	b.terminate(1, 143, "")
	b.remove(1)
	b.clock.Step(2 * time.Second)
	b.failJob()
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(result.RequeueAfter).To(Equal(terminationTimeout), "the end of the leader may still be reported")
	b.Expect(trueCondition(b.setup().Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())

	b.deletePod(0)
	b.terminate(0, 143, "node failure on "+follower)
	b.remove(0)
	setup := b.reconcile()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonBrokerFailed)
	b.Expect(message).To(Equal("rank 1 (pod " + follower + ") ended with exit code 143, because it was deleted; " +
		"rank 0 (pod " + leader + ") ended with exit code 143, because it was deleted: node failure on " + follower))
	b.Expect(setup.Status.ExitCode).To(HaveValue(Equal(int32(143))))
	b.Expect(setup.Status.LeaderPod).To(Equal(leader))
}

// A follower is killed, and so rank 0 ends. The kubelet of the follower's node is busy: the Job controller deletes a pod that
// has ended already.
func TestFollowerWhoseEndIsReportedLate(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	// The deletion has the time of the API server, and not that of the test.
	killed := time.Now().Add(-time.Minute)
	b.kubelet(0, func(pod *corev1.Pod) { makeTerminated(pod, 143, "node failure on bees-1-1", killed) })
	b.deletePod(1)
	b.clock.Step(5 * time.Second)
	b.finishJob(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(result.RequeueAfter).To(Equal(terminationTimeout), "how the follower ended is not known")
	b.Expect(trueCondition(b.setup().Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())

	b.kubelet(1, func(pod *corev1.Pod) { makeTerminated(pod, 137, "", killed) })
	b.finishJob(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	b.reconcile()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonBrokerFailed)
	b.Expect(message).To(HavePrefix("rank 1 (pod " + b.pod(1).Name + ") ended with exit code 137; rank 0 "))
}

// One that never ends is not waited for.
func TestFollowerWhoseEndIsNotReported(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	b.terminate(0, 3, "")
	b.finishJob(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)
	b.reconcile()
	b.clock.Step(terminationTimeout)
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonCommandFailed)
}

// The operator was down when the leader ended, and the pod no longer exists.
func TestEndOfRankZeroThatWasNotObserved(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	b.terminate(1, 137, "")
	b.clock.Step(2 * time.Second)
	b.failJob()
	b.terminate(0, 143, "never observed")
	b.remove(0)
	b.forget()

	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(result.RequeueAfter).To(Equal(terminationTimeout), "the watch may still report it")
	b.clock.Step(terminationTimeout)
	setup := b.reconcile()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonBrokerFailed)
	b.Expect(message).To(Equal("rank 1 (pod " + b.pod(1).Name + ") ended with exit code 137; LogUnavailable: the end of rank 0 was not observed"))
	b.Expect(setup.Status.ExitCode).To(BeNil())
}

// The operator was down when the leader ended, and the pod still exists: nothing is lost.
func TestEndOfRankZeroAfterARestartOfTheOperator(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.terminate(0, 127, "no such program")
	b.failJob()
	b.forget()
	b.reconcile()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonCommandFailed)
	b.Expect(message).To(HaveSuffix("ended with exit code 127: no such program"))
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	spec := fluxOf(1)
	spec.ActiveDeadlineSeconds = new(int64(60))
	b := newSetupTestEnv(t, spec)
	b.running()
	b.Expect(b.job().Spec.ActiveDeadlineSeconds).To(HaveValue(Equal(int64(60))))
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.ActiveDeadlineSeconds = nil })
	b.reconcile()
	b.Expect(b.job().Spec.ActiveDeadlineSeconds).To(BeNil())
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.ActiveDeadlineSeconds = new(int64(90)) })
	b.reconcile()
	b.Expect(b.job().Spec.ActiveDeadlineSeconds).To(HaveValue(Equal(int64(90))))
	version := b.job().ResourceVersion
	b.reconcile()
	b.Expect(b.job().ResourceVersion).To(Equal(version))

	b.finishJob(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded)
	b.terminate(0, 143, "as far as it got")
	b.finishJob(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)
	b.reconcile()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonDeadlineExceeded)
	b.Expect(message).To(HavePrefix("activeDeadlineSeconds (90) was exceeded; rank 0 "))
	b.Expect(message).To(HaveSuffix("ended with exit code 143: as far as it got"))
}

// A rank does not start. The end is written before the Job is deleted, and the leader's output is added when it is
// known.
func TestQuorumNotReachedInTime(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.reconcile()
	b.startPods()
	b.kubelet(0, func(pod *corev1.Pod) {
		makeReady(pod)
		pod.Status.Conditions, pod.Status.ContainerStatuses[0].Started = nil, new(false)
	})
	b.kubelet(1, func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Image: "flux", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"},
		}}}
	})
	b.clock.Step(startupTimeout / 2)
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(result.RequeueAfter).To(Equal(startupTimeout / 2))
	text := "rank 1 (pod " + b.pod(1).Name + "): pulling image flux failed: not found"
	b.Expect(b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonImageNotPulled)).To(Equal(text))

	b.clock.Step(startupTimeout / 2)
	failing := b.through(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errors.New("the operator crashed")
		},
	})
	b.use(failing)
	_, err = b.try()
	b.Expect(err).To(HaveOccurred())
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonImageNotPulled)
	b.Expect(message).To(Equal("the quorum was not reached within 300 s: " + text))
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonFinished)
	b.Expect(b.job().DeletionTimestamp).To(BeNil())

	b.forget()
	b.reconcile()
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
	b.terminate(0, 143, "quorum delayed: waiting for bees-1-1 (rank 1)")
	setup := b.reconcile()
	b.Expect(setup.Status.ExitCode).To(HaveValue(Equal(int32(143))))
	after := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonImageNotPulled)
	b.Expect(after).To(HavePrefix(message + "; rank 0 "))
	b.Expect(after).To(HaveSuffix("quorum delayed: waiting for bees-1-1 (rank 1)"))
	b.collect()
	version := setup.ResourceVersion
	b.Expect(b.reconcile().ResourceVersion).To(Equal(version))
	b.Expect(b.job()).To(BeNil(), "it is not created again")
}

// The time to start applies until the quorum is reached. It does not apply when a restarting kubelet resets the
// readiness of the leader, or when ranks beyond minSize do not start.
func TestStartupTimeoutEndsWithTheQuorum(t *testing.T) {
	t.Parallel()
	spec := fluxOf(3)
	spec.MinSize = new(int32(2))
	b := newSetupTestEnv(t, spec)
	b.reconcile()
	b.startPods(0, 1)
	b.ready(0, 1)
	setup := b.reconcile()
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	b.Expect(setup.Status.ReadyRanks).To(Equal(int32(2)))

	b.kubelet(0, func(pod *corev1.Pod) {
		pod.Status.Conditions[0].Status = corev1.ConditionFalse
		pod.Status.ContainerStatuses[0].Started = new(false)
	})
	b.clock.Step(2 * startupTimeout)
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(result.RequeueAfter).To(BeZero())
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	b.Expect(trueCondition(b.setup().Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
}

func TestPodsThatRemainAreAFailure(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.terminate(0, 1, "")
	b.failJob()
	b.reconcile()
	b.restart()
	b.reconcile()
	pod := b.pod(0).Name
	job := b.job()
	job.Finalizers = nil
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.clock.Step(startupTimeout)
	b.reconcile()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonPodsRemain)
	b.Expect(message).To(Equal("the quorum was not reached within 300 s: Pod " + pod + " of an earlier attempt still exists"))
	b.Expect(b.job()).To(BeNil())
}

// The API server rejects the Job.
func TestRejectedJob(t *testing.T) {
	t.Parallel()
	spec := fluxOf(1)
	spec.Template = &v1alpha1.PodTemplate{VolumeMounts: []corev1.VolumeMount{{Name: "no-such-volume", MountPath: "/data"}}}
	b := newSetupTestEnv(t, spec)
	_, err := b.try()
	b.Expect(err).To(MatchError(ContainSubstring("no-such-volume")), "it is retried")
	b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("no-such-volume"))
	b.Expect(b.setup().Spec.Launch.JobUID).To(BeEmpty(), "the time to start counts")
	b.clock.Step(startupTimeout)
	_, _ = b.try()
	b.Expect(b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("no-such-volume"))
}

// An error that persists is not retried forever.
func TestPersistentErrorIsAFailure(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if _, ok := object.(*corev1.Secret); ok {
				return errors.New("the store is out of order")
			}
			return c.Create(ctx, object, opts...)
		},
	}))
	_, err := b.try()
	b.Expect(err).To(MatchError(ContainSubstring("out of order")))
	b.clock.Step(startupTimeout)
	_, _ = b.try()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonAPIError)
	b.Expect(message).To(HaveSuffix("creating Secret bees-1: the store is out of order"))
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil(), "it was not started, and is deleted")
}
