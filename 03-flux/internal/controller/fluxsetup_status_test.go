package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// failedJob is a Job that has failed at second 10.
func failedJob(reason string) *batchv1.Job {
	job := desiredJob(launchedSetup(fullFlux()))
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobFailed, Status: corev1.ConditionFalse},
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: reason, Message: "so it says", LastTransitionTime: metav1.NewTime(second(10))},
	}
	return job
}

func TestEndOfAFailedJob(t *testing.T) {
	t.Parallel()
	const unseen = "; LogUnavailable: the end of rank 0 was not observed"
	for name, test := range map[string]struct {
		job              string
		leader, follower []func(*corev1.Pod)
		reason, message  string
		exitCode         *int32
	}{
		"the command fails": {
			leader: []func(*corev1.Pod){terminated(3, 9), because("Error", "alas")},
			reason: v1alpha1.ReasonCommandFailed, message: "rank 0 (pod bees-0) ended with exit code 3: alas", exitCode: new(int32(3)),
		},
		"the leader is lost": {
			leader: []func(*corev1.Pod){failedAsAWhole("Evicted", "low on memory", 9)},
			reason: v1alpha1.ReasonCommandFailed, message: "rank 0 (pod bees-0) was lost (Evicted): low on memory" + unseen,
		},
		"a follower fails": {
			leader:   []func(*corev1.Pod){terminated(143, 11), deleted(10), because("Error", "node failure")},
			follower: []func(*corev1.Pod){terminated(137, 8), because("OOMKilled", "")},
			reason:   v1alpha1.ReasonBrokerFailed, exitCode: new(int32(143)),
			message: "rank 1 (pod bees-1) ended with exit code 137 (OOMKilled); rank 0 (pod bees-0) ended with exit code 143, because it was deleted: node failure",
		},
		"the leader does not start": {
			leader: []func(*corev1.Pod){terminated(128, 9), because("StartError", "no /bin/sh")},
			reason: v1alpha1.ReasonPodNotStarted, message: "rank 0 (pod bees-0) did not start (StartError): no /bin/sh", exitCode: new(int32(128)),
		},
		"the kubelet rejects the leader": {
			leader: []func(*corev1.Pod){failedAsAWhole("OutOfcpu", "no room", 9)},
			reason: v1alpha1.ReasonPodNotStarted, message: "rank 0 (pod bees-0) did not start (OutOfcpu): no room",
		},
		"a follower does not start": {
			leader:   []func(*corev1.Pod){terminated(143, 11), deleted(10)},
			follower: []func(*corev1.Pod){terminated(128, 8), because("StartError", "no /bin/sh")},
			reason:   v1alpha1.ReasonPodNotStarted, exitCode: new(int32(143)),
			message: "rank 1 (pod bees-1) did not start (StartError): no /bin/sh; rank 0 (pod bees-0) ended with exit code 143, because it was deleted",
		},
		"nothing was observed": {
			reason: v1alpha1.ReasonBrokerFailed, message: "a broker was lost, and it was not observed which: so it says" + unseen,
		},
		"the deadline": {
			job:    batchv1.JobReasonDeadlineExceeded,
			leader: []func(*corev1.Pod){terminated(143, 11), deleted(10)},
			reason: v1alpha1.ReasonDeadlineExceeded, exitCode: new(int32(143)),
			message: "activeDeadlineSeconds (600) was exceeded; rank 0 (pod bees-0) ended with exit code 143, because it was deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			observed := setupObservation{now: second(30), job: failedJob(test.job), ends: endsOf(test.leader, test.follower)}
			end, wait := endOfAttempt(launchedSetup(fullFlux()), observed, true)
			g.Expect(wait).To(BeZero())
			g.Expect(end.kind).To(Equal(v1alpha1.ConditionFailed))
			g.Expect(end.reason).To(Equal(test.reason))
			g.Expect(end.message).To(Equal(test.message))
			g.Expect(end.exitCode).To(Equal(test.exitCode))
		})
	}
}

// endsOf is what is known of the ends of a leader and a follower. Either may be unknown.
func endsOf(leader, follower []func(*corev1.Pod)) jobTerminations {
	var seen jobTerminations
	for rank, steps := range map[string][]func(*corev1.Pod){"0": leader, "1": follower} {
		if steps != nil {
			pod := rankPod(rank, steps...)
			seen.note(endOfPod(&pod, false), false)
		}
	}
	return seen
}

// The operator waits for the end of the leader from the moment at which it observed the failure of the Job.
func TestLeaderIsWaitedFor(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	leader := rankPod("0", makeReady, deleted(10))
	observed := setupObservation{now: second(12), job: failedJob(batchv1.JobReasonBackoffLimitExceeded)}
	observed.ends.note(endOfPod(&leader, false), false)
	observed.ends.since = second(10)
	end, wait := endOfAttempt(launchedSetup(fullFlux()), observed, true)
	g.Expect(end).To(BeNil())
	g.Expect(wait).To(Equal(13 * time.Second))
	observed.now = second(25)
	end, _ = endOfAttempt(launchedSetup(fullFlux()), observed, true)
	g.Expect(end.message).To(ContainSubstring(v1alpha1.LogUnavailable))

	// The end of the leader is reported late: it is added, and stays.
	status := v1alpha1.FluxSetupStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionFailed, Message: "lost; " + v1alpha1.LogUnavailable + ": not observed"}}}
	makeTerminated(&leader, 143, "at last", second(26))
	for range 2 {
		addTermination(&status, endOfPod(&leader, false))
		g.Expect(status.Conditions[0].Message).To(Equal("lost; rank 0 (pod bees-0) ended with exit code 143, because it was deleted: at last"))
		g.Expect(status.ExitCode).To(HaveValue(Equal(int32(143))))
	}
}

func TestOnlyProgress(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	before := v1alpha1.FluxSetupStatus{Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionQuorumReached, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStarting},
		{Type: v1alpha1.ConditionConfigured, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConfigured},
	}}
	for name, test := range map[string]struct {
		change func(*v1alpha1.FluxSetupStatus)
		only   bool
	}{
		"a rank":            {func(s *v1alpha1.FluxSetupStatus) { s.ReadyRanks++ }, true},
		"the leader's pod":  {func(s *v1alpha1.FluxSetupStatus) { s.LeaderPod = "bees-0" }, false},
		"a start failure":   {func(s *v1alpha1.FluxSetupStatus) { s.Conditions[0].Reason = v1alpha1.ReasonUnschedulable }, true},
		"the quorum":        {func(s *v1alpha1.FluxSetupStatus) { s.Conditions[0].Status = metav1.ConditionTrue }, false},
		"another condition": {func(s *v1alpha1.FluxSetupStatus) { s.Conditions[1].Reason = v1alpha1.ReasonNameConflict }, false},
		"the generation":    {func(s *v1alpha1.FluxSetupStatus) { s.ObservedGeneration++ }, false},
	} {
		after := *before.DeepCopy()
		test.change(&after)
		g.Expect(onlyProgress(after, before)).To(Equal(test.only), name)
	}
}

// An injected container runs on in the pod of rank 0, so that the Job does not end, and another writer has removed our label from
// the pod, so that neither the watch nor the cache has it. How rank 0 ended is read past the cache.
func TestRankZeroEndsInAPodThatTheCacheLacks(t *testing.T) {
	t.Parallel()
	for exitCode, end := range map[int32]string{0: v1alpha1.ConditionComplete, 3: v1alpha1.ConditionFailed} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.running()
			b.terminateBroker(exitCode, "")
			pod := b.pod(0)
			delete(pod.Labels, labelManagedBy)
			b.Expect(b.client.Update(b.ctx, pod)).To(Succeed())
			b.reconciler = b.newReconciler(b.withCacheOfPods())
			b.clock.Step(readinessInterval)
			result, err := b.try()
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(result.RequeueAfter).To(Equal(terminationTimeout))
			b.clock.Step(terminationTimeout)
			setup := b.reconcile()
			b.Expect(trueCondition(setup.Status.Conditions, end)).NotTo(BeNil())
			b.Expect(setup.Status.ExitCode).To(HaveValue(Equal(exitCode)))
		})
	}
}
