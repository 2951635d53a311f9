package controller

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// admitJobs is a client that simulates an admission policy, which changes Jobs when they are created.
func (b *setupTestEnv) admitJobs(change func(*batchv1.JobSpec)) client.Client {
	b.t.Helper()
	return b.through(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if job, ok := object.(*batchv1.Job); ok {
				change(&job.Spec)
			}
			return c.Create(ctx, object, opts...)
		},
	})
}

// restartAfter3 is a rule of a container that ends with 3.
func restartAfter3(action corev1.ContainerRestartRuleAction) corev1.ContainerRestartRule {
	return corev1.ContainerRestartRule{Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
		Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{3},
	}}
}

// An admission policy changes what decides how often the Job runs the command: the Job is not started.
func TestJobChangedByAdmissionIsNotStarted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*batchv1.JobSpec){
		"backoffLimit":         func(spec *batchv1.JobSpec) { spec.BackoffLimit = new(int32(6)) },
		"backoffLimitPerIndex": func(spec *batchv1.JobSpec) { spec.BackoffLimitPerIndex = new(int32(1)) },
		"podReplacementPolicy": func(spec *batchv1.JobSpec) { spec.PodReplacementPolicy = new(batchv1.Failed) },
		"podFailurePolicy": func(spec *batchv1.JobSpec) {
			spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:      batchv1.PodFailurePolicyActionIgnore,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{3}},
			}}}
		},
		"completionMode": func(spec *batchv1.JobSpec) {
			spec.CompletionMode, spec.SuccessPolicy = new(batchv1.NonIndexedCompletion), nil
		},
		"completions":   func(spec *batchv1.JobSpec) { spec.Completions = new(int32(3)) },
		"successPolicy": func(spec *batchv1.JobSpec) { spec.SuccessPolicy = nil },
		"managedBy":     func(spec *batchv1.JobSpec) { spec.ManagedBy = new("example.com/another-controller") },
		"restartPolicy": func(spec *batchv1.JobSpec) { spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure },
		"restartPolicy of the container": func(spec *batchv1.JobSpec) {
			spec.Template.Spec.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyOnFailure)
		},
		"restartPolicyRules of the container": func(spec *batchv1.JobSpec) {
			container := &spec.Template.Spec.Containers[0]
			container.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
			container.RestartPolicyRules = []corev1.ContainerRestartRule{restartAfter3(corev1.ContainerRestartRuleActionRestart)}
		},
		"restartPolicyRules of an injected container": func(spec *batchv1.JobSpec) {
			spec.Template.Spec.Containers = append(spec.Template.Spec.Containers, corev1.Container{
				Name: "injected", Image: "injected", RestartPolicy: new(corev1.ContainerRestartPolicyNever),
				RestartPolicyRules: []corev1.ContainerRestartRule{restartAfter3(corev1.ContainerRestartRuleActionRestartAllContainers)},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(2))
			b.reconciler = b.newReconciler(b.admitJobs(change))
			b.reconcile()
			b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobChanged)
			b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()), "it was started")
			b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
		})
	}
}

// An admission policy injects containers that are restarted, alone: the command is not.
func TestJobWithAnInjectedContainerThatRestartsIsStarted(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.reconciler = b.newReconciler(b.admitJobs(func(spec *batchv1.JobSpec) {
		pod := &spec.Template.Spec
		pod.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyNever)
		pod.Containers = append(pod.Containers, corev1.Container{
			Name: "injected", Image: "injected", RestartPolicy: new(corev1.ContainerRestartPolicyOnFailure),
			RestartPolicyRules: []corev1.ContainerRestartRule{restartAfter3(corev1.ContainerRestartRuleActionRestart)},
		})
		pod.InitContainers = append(pod.InitContainers, corev1.Container{
			Name: "sidecar", Image: "injected", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		})
	}))
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeFalse()))
}

// deleteJobWithFinalizer deletes the Job in the background while a finalizer of another client keeps it: the Job
// controller does not finish the Job any more.
func (b *setupTestEnv) deleteJobWithFinalizer() {
	b.t.Helper()
	job := b.job()
	job.Finalizers = append(job.Finalizers, "example.com/held")
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
}

// The Job is deleted, and a finalizer of another client keeps it.
func TestJobBeingDeletedIsLost(t *testing.T) {
	t.Parallel()
	t.Run("before the quorum", func(t *testing.T) {
		t.Parallel()
		b := newSetupTestEnv(t, fluxOf(2))
		b.reconcile()
		b.deleteJobWithFinalizer()
		b.reconcile()
		b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
		b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonJobLost)
	})
	t.Run("after it", func(t *testing.T) {
		t.Parallel()
		b := newSetupTestEnv(t, fluxOf(2))
		b.running()
		b.deleteJobWithFinalizer()
		b.terminate(1, 137, "")
		b.reconcile()
		message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
		b.Expect(message).To(ContainSubstring("was deleted by another client"))
	})
	t.Run("before it was started", func(t *testing.T) {
		t.Parallel()
		b := newSetupTestEnv(t, fluxOf(1))
		b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return errCrash
			},
		}))
		_, err := b.try()
		b.Expect(err).To(MatchError(errCrash))
		b.forget()
		b.deleteJobWithFinalizer()
		b.reconcile()
		b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
		b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()), "nothing has run")
	})
	t.Run("after it has ended", func(t *testing.T) {
		t.Parallel()
		b := newSetupTestEnv(t, fluxOf(1))
		b.running()
		b.terminate(0, 3, "")
		b.failJob()
		b.deleteJobWithFinalizer()
		b.reconcile()
		b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonCommandFailed)
	})
}

// Rank 0 has ended with 0, and the Job is deleted before the Job controller has counted that: the command is not run
// again. The pod exists for longer than the Job.
func TestSuccessOfRankZeroIsNotLostWithADeletedJob(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*setupTestEnv){
		"deleted": func(b *setupTestEnv) {
			b.Expect(b.client.Delete(b.ctx, b.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		},
		"kept by a finalizer": (*setupTestEnv).deleteJobWithFinalizer,
		"deleted while the operator was down": func(b *setupTestEnv) {
			b.Expect(b.client.Delete(b.ctx, b.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			b.forget()
		},
	} {
		for _, exitCode := range []int32{0, 3} {
			t.Run(fmt.Sprintf("%s with %d", name, exitCode), func(t *testing.T) {
				t.Parallel()
				b := newSetupTestEnv(t, fluxOf(1))
				b.running()
				b.terminate(0, exitCode, "")
				remove(b)
				setup := b.reconcile()
				b.Expect(setup.Status.ExitCode).To(HaveValue(Equal(exitCode)))
				if exitCode == 0 {
					b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
				} else {
					b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
				}
			})
		}
	}
}

// A started Job is suspended and resumed while the operator is down, and its pods had only just been observed before. The
// command runs again in the same attempt, which the name of the first pod of rank 0 shows.
func TestJobSuspendedAndResumedWhileTheOperatorWasDown(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconcile()
	b.startPods()
	b.reconcile()
	first, job := b.pod(0).Name, b.job()

	job.Spec.Suspend = new(true)
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.remove(0)
	job.Spec.Suspend = new(false)
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.addLeader()
	b.forget()
	b.reconcile()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobChanged)
	b.Expect(message).To(HavePrefix("pod " + first + " of rank 0 was replaced by pod " + b.pod(0).Name))
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
}
