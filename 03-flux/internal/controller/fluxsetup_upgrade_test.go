package controller

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// launchOfOlderOperator simulates an older version of the operator, in which attempts had no names: Job, ConfigMap and
// Secret have the name of the FluxSetup, and the Job is not suspended. It is recorded, or not if that operator crashed
// before.
func (b *setupTestEnv) launchOfOlderOperator(recorded bool) *batchv1.Job {
	b.t.Helper()
	setup := b.setup()
	job := desiredJob(setup)
	job.Name, job.Annotations, job.Spec.Suspend = setup.Name, map[string]string{"flux-framework.org/nonce": "nonce"}, nil
	for _, dependent := range []client.Object{
		desiredConfigMap(setup, job), desiredSecret(setup, job, []byte("certificate")),
		&corev1.Service{Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{batchv1.JobNameLabel: setup.Name},
			Ports: []corev1.ServicePort{{Name: portName, Port: setup.Spec.Broker.Port}},
		}}, job,
	} {
		dependent.SetName(setup.Name)
		dependent.SetNamespace(setup.Namespace)
		dependent.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(setup, v1alpha1.SchemeGroupVersion.WithKind("FluxSetup"))})
		b.Expect(b.client.Create(b.ctx, dependent, client.FieldOwner(setupFieldOwner))).To(Succeed())
	}
	launch := v1alpha1.Launch{Attempt: setup.Spec.Attempt, Time: metav1.NewTime(b.clock.Now())}
	if recorded {
		launch.JobUID = string(job.UID)
	}
	b.Expect(b.client.Apply(b.ctx, desiredLaunch(setup, launch), client.FieldOwner(launchFieldOwner))).To(Succeed())

	// It owned a field that no longer exists.
	setup = b.setup()
	for i, entry := range setup.ManagedFields {
		if entry.Manager == launchFieldOwner {
			fields := strings.Replace(entry.FieldsV1.String(), `"f:attempt":{}`, `"f:attempt":{},"f:nonce":{}`, 1)
			setup.ManagedFields[i].FieldsV1 = metav1.NewFieldsV1(fields)
		}
	}
	b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
	b.Expect(fmt.Sprint(b.setup().ManagedFields)).To(ContainSubstring("f:nonce"))
	return job
}

// The operator is upgraded while a Job of the older version runs: the Job is found, and not launched a second time.
func TestJobOfAnOlderOperator(t *testing.T) {
	t.Parallel()
	for name, recorded := range map[string]bool{"recorded": true, "not recorded yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(2))
			old := b.launchOfOlderOperator(recorded)
			b.running()
			b.Expect(b.jobs()).To(HaveLen(1))
			b.Expect(b.setup().Spec.Launch.JobUID).To(Equal(string(old.UID)))
			for _, pod := range b.pods() {
				for key, value := range fetch[corev1.Service](b).Spec.Selector {
					b.Expect(pod.Labels).To(HaveKeyWithValue(key, value), "its brokers can connect to each other")
				}
			}

			// 1. It fails, and the next attempt is one of the new version. They share no objects.
			b.terminate(0, 1, "")
			b.failJob()
			b.reconcile()
			b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonCommandFailed)
			b.restart()
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
			b.Expect(b.jobs()).To(HaveLen(1))
			b.collect()
			b.running()
			b.Expect(b.job().Name).To(Equal("bees-2"))
			b.Expect(b.pod(0).Spec.Volumes[1].ConfigMap.Name).To(Equal("bees-2"))
		})
	}
}

// A Job of an older version runs to its end, succeeds, and is deleted in the same way as a new one.
func TestJobOfAnOlderOperatorSucceeds(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.launchOfOlderOperator(true)
	b.running()
	b.Expect(b.client.Delete(b.ctx, fetch[corev1.ConfigMap](b))).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(fetch[corev1.ConfigMap](b)).To(BeNil(), "its brokers have read their files")
	b.terminate(0, 0, "")
	b.judge(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.suspend()
	b.reconcile()
	b.collect()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.Expect(b.jobs()).To(BeEmpty())
}

// A user suspends the Job of an older version while the operator is upgraded. If the Job were resumed, it would run the
// command again.
func TestJobOfAnOlderOperatorIsSuspended(t *testing.T) {
	t.Parallel()
	for name, recorded := range map[string]bool{"recorded": true, "not recorded yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			old := b.launchOfOlderOperator(recorded)
			old.Spec.Suspend = new(true)
			b.Expect(b.client.Update(b.ctx, old)).To(Succeed())
			_, err := b.try()
			b.Expect(err).NotTo(HaveOccurred())
			b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobChanged)
			b.Expect(b.jobs()).To(HaveLen(1))
			b.Expect(b.job().UID).To(Equal(old.UID))
			b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
		})
	}
}

// A user deletes the Job of an older version.
func TestJobOfAnOlderOperatorIsLost(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	old := b.launchOfOlderOperator(true)
	b.running()
	b.Expect(b.client.Delete(b.ctx, old, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
	b.Expect(b.jobs()).To(BeEmpty())
}

// The operator is upgraded between the creation of the Job and that of its ConfigMap, and the new version writes other
// files. Nothing has run: the Job is deleted, and created again for the new files.
func TestUpgradeBeforeTheJobIsRecorded(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	old := desiredJob(b.setup())
	old.Annotations[annotationConfigHash] = "of other files"
	b.Expect(b.client.Create(b.ctx, old)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.collect()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(b.job().UID).NotTo(Equal(old.UID))
	b.Expect(b.job().Annotations).To(HaveKeyWithValue(annotationConfigHash, clusterOf(b.setup()).Hash()))
}

// Another client replaces the labels of an older version's Job, by which it was found. Its name identifies it too.
func TestJobOfAnOlderOperatorWithoutItsLabels(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.launchOfOlderOperator(true)
	b.running()
	job := b.job()
	job.Labels = map[string]string{"theirs": "stays"}
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(trueCondition(b.setup().Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
	b.Expect(b.job().Labels).To(HaveKeyWithValue("theirs", "stays"))
	b.terminate(0, 1, "")
	b.failJob()
	b.reconcile()
	b.restart()
	b.reconcile()
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil(), "the next attempt finds it")
}
