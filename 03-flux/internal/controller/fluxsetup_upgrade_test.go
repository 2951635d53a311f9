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

// launchOfOlderOperator simulates the operator before each attempt had a name of its own: Job, ConfigMap and Secret have
// the name of the FluxSetup, the Job is not suspended, and was recorded or, if the operator crashed then, not yet.
func (b *bees) launchOfOlderOperator(recorded bool) *batchv1.Job {
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
		dependent.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(setup, v1alpha1.GroupVersion.WithKind("FluxSetup"))})
		b.Expect(b.client.Create(b.ctx, dependent, client.FieldOwner(setupFieldOwner))).To(Succeed())
	}
	launch := v1alpha1.Launch{Attempt: setup.Spec.Attempt, Time: metav1.NewTime(b.clock.Now())}
	if recorded {
		launch.JobUID = string(job.UID)
	}
	b.Expect(b.client.Apply(b.ctx, desiredLaunch(setup, launch), client.FieldOwner(launchFieldOwner))).To(Succeed())
	return job
}

// The operator is upgraded while a Job of the older one runs: it is found, and never launched a second time.
func TestJobOfAnOlderOperator(t *testing.T) {
	t.Parallel()
	for name, recorded := range map[string]bool{"recorded": true, "not recorded yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBees(t, fluxOf(2))
			old := b.launchOfOlderOperator(recorded)
			b.running()
			b.Expect(b.jobs()).To(HaveLen(1))
			b.Expect(b.setup().Spec.Launch.JobUID).To(Equal(string(old.UID)))
			for _, pod := range b.pods() {
				for key, value := range fetch[corev1.Service](b).Spec.Selector {
					b.Expect(pod.Labels).To(HaveKeyWithValue(key, value), "its brokers find each other")
				}
			}

			// 1. It fails, and the next attempt is one of today's. Nothing of the two meets.
			b.terminate(0, 1, "")
			b.failJob()
			b.pass()
			b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonCommandFailed)
			b.restart()
			b.pass()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
			b.Expect(b.jobs()).To(HaveLen(1))
			b.collect()
			b.running()
			b.Expect(b.job().Name).To(Equal("bees-2"))
			b.Expect(b.pod(0).Spec.Volumes[1].ConfigMap.Name).To(Equal("bees-2"))
		})
	}
}

// A Job of an older operator runs to its end, succeeds, and is deleted as today's are.
func TestJobOfAnOlderOperatorSucceeds(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.launchOfOlderOperator(true)
	b.running()
	b.Expect(b.client.Delete(b.ctx, fetch[corev1.ConfigMap](b))).To(Succeed())
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(fetch[corev1.ConfigMap](b)).To(BeNil(), "its brokers have read their files")
	b.terminate(0, 0, "")
	b.judge(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.pass()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.suspend()
	b.pass()
	b.collect()
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.Expect(b.jobs()).To(BeEmpty())
}

// The Job of an older operator is deleted by a user, or suspended.
func TestJobOfAnOlderOperatorIsLost(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	old := b.launchOfOlderOperator(true)
	b.running()
	b.Expect(b.client.Delete(b.ctx, old, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	b.pass()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
	b.Expect(b.jobs()).To(BeEmpty())
}
