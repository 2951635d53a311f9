package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
)

func TestCreateToComplete(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))

	setup := b.reconcile()
	b.expect(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonOwned)
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	b.Expect(setup.Status.ConfigHash).To(Equal(clusterOf(setup).Hash()))
	b.Expect(b.job().Name).To(Equal("bees-1"))
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeFalse()))
	b.Expect(setup.Spec.Launch.Attempt).To(Equal(int32(1)))
	b.Expect(setup.Spec.Launch.JobUID).To(Equal(string(b.job().UID)))
	for _, dependent := range []client.Object{b.job(), fetch[corev1.Service](b)} {
		b.Expect(metav1.IsControlledBy(dependent, setup)).To(BeTrue(), "%T is left to the garbage collector", dependent)
	}
	for _, dependent := range []client.Object{b.secret(), b.configMap()} {
		b.Expect(metav1.IsControlledBy(dependent, b.job())).To(BeTrue(), "%T is left to the garbage collector", dependent)
	}

	b.startPods()
	b.ready(1)
	b.clock.Step(time.Second)
	setup = b.reconcile()
	b.Expect(setup.Status.ReadyRanks).To(Equal(int32(1)))
	b.Expect(setup.Status.LeaderPod).To(Equal(b.pod(0).Name))
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)

	b.ready(0)
	setup = b.reconcile()
	b.Expect(setup.Status.ReadyRanks).To(Equal(int32(2)))
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)

	b.terminate(0, 0, "")
	b.reconcile()
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	setup = b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	b.Expect(setup.Status.ExitCode).To(HaveValue(BeZero()))
	b.Expect(setup.Status.ReadyRanks).To(BeZero())
	b.Expect(setup.Status.LeaderPod).To(Equal(b.pod(0).Name), "the logs are still there")

	version := setup.ResourceVersion
	b.clock.Step(time.Hour)
	b.forget()
	b.Expect(b.reconcile().ResourceVersion).To(Equal(version), "nothing is written in steady state, nor after a restart of the operator")
	b.Expect(b.job().DeletionTimestamp).To(BeNil(), "what has ended by itself is kept")
}

// The command may end before the kubelet has probed the container.
func TestCommandShorterThanAProbe(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconcile()
	b.startPods()
	b.terminate(0, 0, "")
	b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}

func TestCertificateIsNeverReplacedWhileTheJobExists(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.reconcile()
	b.startPods()
	secret := b.secret()
	b.Expect(secret.Immutable).To(HaveValue(BeTrue()))
	b.Expect(secret.Data).To(HaveKey(broker.CertificateFile))
	b.Expect(b.client.Delete(b.ctx, secret)).To(Succeed())
	b.reconcile()
	b.forget()
	b.reconcile()
	b.Expect(b.secret()).To(BeNil())

	// The next attempt starts with new objects.
	b.terminate(1, 1, "")
	b.finishJob(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)
	b.restart()
	b.reconcile()
	b.Expect(b.secret()).To(BeNil(), "the old Job still exists")
	b.collect()
	b.reconcile()
	b.Expect(b.secret().Data).NotTo(Equal(secret.Data))
}

// While brokers become ready one by one, a status is written once a second. The name of the leader's pod and the quorum are
// written at once.
func TestReadyRanksAreThrottled(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(3))
	b.reconcile()
	b.startPods()
	b.Expect(b.reconcile().Status.LeaderPod).To(Equal(b.pod(0).Name))
	b.ready(1)
	b.clock.Step(400 * time.Millisecond)
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(result.RequeueAfter).To(Equal(600 * time.Millisecond))
	b.Expect(b.setup().Status.ReadyRanks).To(BeZero())

	b.clock.Step(600 * time.Millisecond)
	b.Expect(b.reconcile().Status.ReadyRanks).To(Equal(int32(1)))
	b.ready(2)
	b.Expect(b.reconcile().Status.ReadyRanks).To(Equal(int32(1)))
	b.ready(0)
	b.Expect(b.reconcile().Status.ReadyRanks).To(Equal(int32(3)))
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}
