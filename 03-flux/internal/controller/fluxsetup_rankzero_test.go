package controller

import (
	"context"
	"fmt"
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

// terminateBroker simulates a kubelet: the broker of rank 0 has ended, and an injected container of its pod still runs.
func (b *setupTestEnv) terminateBroker(exitCode int32, output string) {
	b.t.Helper()
	b.kubelet(0, func(pod *corev1.Pod) {
		makeTerminated(pod, exitCode, output, b.clock.Now())
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: "injected", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	})
}

// An injected container still runs in the pod of rank 0, so that the Job does not end.
func TestRankZeroEndsWithoutItsPod(t *testing.T) {
	t.Parallel()
	for _, exitCode := range []int32{0, 3} {
		t.Run(fmt.Sprint(exitCode), func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(2))
			b.running()
			b.terminateBroker(exitCode, "the end of the output")
			b.clock.Step(readinessInterval)
			result, err := b.try()
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(result.RequeueAfter).To(Equal(terminationTimeout), "the Job controller may still report the end")
			b.Expect(attemptEnded(b.setup())).To(BeFalse())

			b.clock.Step(terminationTimeout)
			setup := b.reconcile()
			b.Expect(setup.Status.ExitCode).To(HaveValue(Equal(exitCode)))
			if exitCode > 0 {
				message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonCommandFailed)
				b.Expect(message).To(HaveSuffix("ended with exit code 3: the end of the output"))
				b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
				return
			}
			b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
			b.Expect(b.job().DeletionTimestamp).To(BeNil(), "its log is the only copy of the output")

			// If a suspension of the Job were reverted, the command would run again.
			job := b.job()
			job.Spec.Suspend = new(true)
			b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
			b.reconcile()
			b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
		})
	}
}

// The kubelet and the Job controller are slow: a Job that has not failed yet is not deleted, because its log would be
// lost.
func TestLogOfRankZeroIsKeptWhereTheKubeletIsSlow(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	b.kubelet(0, func(pod *corev1.Pod) {
		makeTerminated(pod, 3, "the end of the output", b.clock.Now())
		pod.Status.Phase = corev1.PodRunning
	})
	b.clock.Step(readinessInterval)
	b.reconcile()
	b.clock.Step(10 * terminationTimeout)
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(result.RequeueAfter).To(Equal(jobResultTimeout - 10*terminationTimeout))
	b.Expect(attemptEnded(b.setup())).To(BeFalse())

	b.terminate(0, 3, "the end of the output")
	b.failJob()
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonCommandFailed)
	b.Expect(b.job().DeletionTimestamp).To(BeNil(), "pods and logs are kept")
}

// The node of rank 0 is lost before its pod ends: the exit code of the broker counts, but only after a wait.
func TestRankZeroEndsAndItsNodeIsLost(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.kubelet(0, func(pod *corev1.Pod) {
		makeTerminated(pod, 0, "", b.clock.Now())
		pod.Status.Phase = corev1.PodRunning
	})
	b.clock.Step(readinessInterval)
	b.reconcile()
	b.clock.Step(jobResultTimeout)
	b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
}

// Another writer suspends the Job before the Job controller has counted the success of rank 0: there is nothing to wait
// for, and the Job is not resumed.
func TestSuccessOfRankZeroIsNotLostWithItsJob(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.terminateBroker(0, "")
	job := b.job()
	job.Spec.Suspend = new(true)
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
}

// The clocks of a node and of the Job controller are ahead of ours. The operator measures its waits with its own clock.
func TestClocksOfOthersAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*setupTestEnv){
		"the broker has ended": func(b *setupTestEnv) { b.terminateBroker(0, "") },
		"the Job has failed":   func(b *setupTestEnv) { b.failJob() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.running()
			now := b.clock.Now()
			b.clock.SetTime(now.Add(time.Hour))
			end(b)
			b.clock.SetTime(now.Add(readinessInterval))
			result, err := b.try()
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(result.RequeueAfter).To(Equal(terminationTimeout))
			b.clock.Step(terminationTimeout)
			b.Expect(attemptEnded(b.reconcile())).To(BeTrue())
		})
	}
}

// withCacheOfPods is a client that lists pods as the cache does: only those that have our label.
func (b *setupTestEnv) withCacheOfPods() client.Client {
	b.t.Helper()
	return b.through(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			if pods, ok := list.(*corev1.PodList); ok {
				all := pods.Items
				pods.Items = nil
				for _, pod := range all {
					if pod.Labels[labelManagedBy] == managedBy {
						pods.Items = append(pods.Items, pod)
					}
				}
			}
			return nil
		},
	})
}

// Another writer removes our label from the pod of rank 0, and the watch reports that as a deletion. The pod still
// runs, and still belongs to the Job.
func TestPodWithoutItsLabelHasNotEnded(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconciler = b.newReconciler(b.withCacheOfPods())
	b.reconcile()
	b.startPods()
	b.kubelet(0, runs)
	labelled := b.pod(0)
	pod := labelled.DeepCopy()
	delete(pod.Labels, labelManagedBy)
	b.Expect(b.client.Update(b.ctx, pod)).To(Succeed())
	b.reconciler.terminations.note(labelled, true, true)
	b.clock.Step(readinessInterval)
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(result.RequeueAfter).To(Equal(podsTimeout-readinessInterval), "it counts as a pod that was not created")

	pod = b.pod(0)
	makeReady(pod)
	b.Expect(b.client.Status().Update(b.ctx, pod)).To(Succeed())
	b.clock.Step(startupTimeout)
	b.reconcile()
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	b.Expect(attemptEnded(b.setup())).To(BeFalse())

	b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
}

// replaceLeader simulates another writer, who removes the Job controller's finalizer from the pod of rank 0 and deletes
// the pod, and the Job controller, which has not counted its end and creates another one.
func (b *setupTestEnv) replaceLeader() {
	b.t.Helper()
	b.Expect(b.client.Delete(b.ctx, b.pod(0), client.GracePeriodSeconds(0))).To(Succeed())
	b.addLeader()
}

func (b *setupTestEnv) addLeader() {
	b.t.Helper()
	pod := podOfJob(b.job(), 0)
	pod.Name += "-again"
	pod.Spec.NodeName = "node"
	b.Expect(b.client.Create(b.ctx, pod)).To(Succeed())
}

// The pod of rank 0 no longer exists, its end was not observed, and another pod runs the command again, or has run it.
// The attempt has failed, whatever happens in the second pod, and its Job is deleted at once.
func TestReplacedLeaderIsNeverASuccess(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(*setupTestEnv){
		"observed": func(b *setupTestEnv) {
			b.deletePod(0)
			b.remove(0)
			b.addLeader()
		},
		"while the operator was down": func(b *setupTestEnv) {
			b.replaceLeader()
			b.forget()
		},
		"and has succeeded": func(b *setupTestEnv) {
			b.replaceLeader()
			b.ready(0)
			b.terminate(0, 0, "")
			b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
			b.forget()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.running()
			first := b.pod(0).Name
			replace(b)
			setup := b.reconcile()
			message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobChanged)
			b.Expect(message).To(HavePrefix("pod " + first + " of rank 0 was replaced by pod " + b.pod(0).Name))
			b.Expect(setup.Status.ExitCode).To(BeNil())
			b.Expect(setup.Status.LeaderPod).To(Equal(first))
			b.Expect(trueCondition(setup.Status.Conditions, v1alpha1.ConditionComplete)).To(BeNil())
			b.Expect(jobResult(b.job()) != nil || !b.job().DeletionTimestamp.IsZero()).To(BeTrue(), "the command would run again")
		})
	}
}

// The end of rank 0 was observed, but the Job controller could not count it. It counts for the attempt, and the Job,
// which runs the command again, is deleted, even if the first deletion fails.
func TestReplacedLeaderHasEnded(t *testing.T) {
	t.Parallel()
	for _, exitCode := range []int32{0, 3} {
		t.Run(fmt.Sprint(exitCode), func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.running()
			b.terminate(0, exitCode, "")
			b.addLeader()
			b.reconciler = b.newReconciler(keepingJobs(b))
			_, err := b.try()
			b.Expect(err).To(HaveOccurred())
			if exitCode == 0 {
				b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
			} else {
				b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonCommandFailed)
			}
			b.Expect(b.setup().Status.ExitCode).To(HaveValue(Equal(exitCode)))
			b.forget()
			b.reconcile()
			b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
		})
	}
}
