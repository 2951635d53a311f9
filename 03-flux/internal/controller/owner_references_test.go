package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// Another client empties the ownerReferences of the FluxSetup. The recorded uid shows that the Flux owns it, and the
// owner reference is restored. The operator's role allows that.
func TestFluxSetupWithoutItsOwnerIsOwnedAgain(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*fluxTestEnv){
		"running":  func(*fluxTestEnv) {},
		"complete": func(w *fluxTestEnv) { w.report(setSucceeded) },
		"complete, TTL passed": func(w *fluxTestEnv) {
			w.report(setSucceeded)
			w.change(withTTL(0))
			w.report(setCleared)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFluxTestEnv(t)
			w.start()
			before(w)
			setup, flux := w.setup(), w.flux()
			setup.OwnerReferences = nil
			w.Expect(w.client.Update(w.ctx, setup, client.FieldOwner("another-client"))).To(Succeed())
			user := "operator-of-" + w.namespace
			w.grantRole(user)
			operator, err := client.New(apiServer(t).addUser(t, user), client.Options{Scheme: scheme})
			w.Expect(err).NotTo(HaveOccurred())
			w.use(operator)
			w.reconcile()
			w.Expect(metav1.IsControlledBy(w.setup(), flux)).To(BeTrue())
			w.Expect(w.setup().Spec).To(Equal(setup.Spec), "nothing else of it changed")
			w.Expect(w.flux().Status).To(Equal(flux.Status))
			w.unfreezeCache()
			w.expectSteadyState()
		})
	}
}

// Another client empties the ownerReferences of the Job. The recorded uid shows that the FluxSetup owns it, and the
// owner reference is restored: then the Job is watched, and deleted with the FluxSetup.
func TestJobWithoutItsOwnerIsOwnedAgain(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*setupTestEnv){
		"running": func(*setupTestEnv) {},
		"complete": func(b *setupTestEnv) {
			b.terminate(0, 0, "")
			b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
			b.becomes(v1alpha1.ConditionComplete)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.manage()
			b.becomes(v1alpha1.ConditionConfigured)
			b.startPods()
			b.ready(0)
			b.becomes(v1alpha1.ConditionQuorumReached)
			before(b)
			job := b.job()
			job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "x"}}
			b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
			b.Eventually(func() bool { return metav1.IsControlledBy(b.job(), b.setup()) }, watchTimeout).Should(BeTrue())
			b.Expect(b.job().UID).To(Equal(job.UID))
			b.Expect(b.job().OwnerReferences).To(HaveLen(2), "what another client adds is left unchanged")
			b.Expect(b.job().DeletionTimestamp).To(BeNil())
			b.Expect(trueCondition(b.setup().Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
		})
	}
}

// Another controller in the owner references of the recorded Job does not change who owns it.
func TestRecordedJobIsThatOfTheAttemptWhoeverOwnsIt(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	job := b.job()
	job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: new(true)}}
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	setup := b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
	b.Expect(b.job()).To(Equal(job), "it is left unchanged")
	b.suspend()
	b.reconcile()
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
}

// The FluxSetup of an attempt that has ended loses its owner reference, which is restored: the status of the end stays.
func TestNotOwnedAfterItsEnd(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.terminate(0, 0, "")
	b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	before := b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)

	setup := b.setup()
	setup.OwnerReferences = nil
	b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNotOwned)
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)

	setup = b.setup()
	setup.OwnerReferences = before.OwnerReferences
	b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
	after := b.reconcile().Status
	for i := range after.Conditions {
		if after.Conditions[i].Type == v1alpha1.ConditionAccepted {
			after.Conditions[i].LastTransitionTime = before.Status.Conditions[i].LastTransitionTime
		}
	}
	b.Expect(after).To(Equal(before.Status))
}

// Another client removes the labels by which the Job of an earlier attempt is found: the next attempt still finds and
// deletes it, and so does a suspension.
func TestJobWithoutItsLabelsIsLabelledAgain(t *testing.T) {
	t.Parallel()
	for _, label := range []string{labelInstance, labelManagedBy, labelAttempt} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.running()
			b.terminate(0, 1, "")
			b.failJob()
			b.reconcile()
			job := b.job()
			delete(job.Labels, label)
			job.Labels["theirs"] = "stays"
			b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
			b.reconcile()
			b.Expect(b.job().Labels).To(HaveKeyWithValue("theirs", "stays"))
			b.restart()
			b.reconcile()
			b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
			b.collect()
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
		})
	}
}

// The FluxSetup loses its owner reference while the command runs, and it is restored: QuorumReached stays True, even if
// the broker of rank 0 is not ready at that time.
func TestNotOwnedWhileItRuns(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	setup := b.setup()
	owners := setup.OwnerReferences
	setup.OwnerReferences = nil
	b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNotOwned)
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNotOwned)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)

	b.kubelet(0, func(pod *corev1.Pod) { pod.Status.Conditions, pod.Status.ContainerStatuses = nil, nil })
	setup = b.setup()
	setup.OwnerReferences = owners
	b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonOwned)
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
}
