package controller

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startPods simulates the Job controller and the scheduler: it creates a pod, on a node, for each of the ranks, or for
// all ranks if none is named.
func (b *setupTestEnv) startPods(ranks ...int) {
	b.t.Helper()
	job := b.job()
	if len(ranks) == 0 {
		for rank := range int(*job.Spec.Completions) {
			ranks = append(ranks, rank)
		}
	}
	for _, rank := range ranks {
		pod := podOfJob(job, rank)
		pod.Spec.NodeName = "node"
		b.Expect(b.client.Create(b.ctx, pod)).To(Succeed())
	}
}

// podOfJob is the pod that the Job controller creates from a Job's template.
func podOfJob(job *batchv1.Job, rank int) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = fmt.Sprintf("%s-%d-%.5s", job.Name, rank, job.UID)
	pod.Namespace = job.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, fmt.Sprint(rank))
	pod.Spec.Hostname = fmt.Sprintf("%s-%d", job.Name, rank)
	return pod
}

func (b *setupTestEnv) pods() []corev1.Pod {
	b.t.Helper()
	var pods corev1.PodList
	b.Expect(b.client.List(b.ctx, &pods, client.InNamespace(b.namespace))).To(Succeed())
	slices.SortFunc(pods.Items, func(x, y corev1.Pod) int { return int(rankOf(&x) - rankOf(&y)) })
	return pods.Items
}

func (b *setupTestEnv) pod(rank int) *corev1.Pod {
	b.t.Helper()
	for _, pod := range b.pods() {
		if rankOf(&pod) == int32(rank) {
			return &pod
		}
	}
	b.t.Fatalf("there is no pod of rank %d", rank)
	return nil
}

// kubelet simulates a kubelet, which writes the status of the pod of a rank.
func (b *setupTestEnv) kubelet(rank int, mutate func(*corev1.Pod)) {
	b.t.Helper()
	pod := b.pod(rank)
	mutate(pod)
	b.Expect(b.client.Status().Update(b.ctx, pod)).To(Succeed())
	b.reconciler.terminations.note(b.pod(rank), false, true)
}

// ready simulates the kubelets, which report that the pods of the ranks are ready.
func (b *setupTestEnv) ready(ranks ...int) {
	b.t.Helper()
	for _, rank := range ranks {
		b.kubelet(rank, makeReady)
	}
}

// terminate simulates a kubelet, which reports that the broker of a rank has ended.
func (b *setupTestEnv) terminate(rank int, exitCode int32, output string) {
	b.t.Helper()
	b.kubelet(rank, func(pod *corev1.Pod) { makeTerminated(pod, exitCode, output, b.clock.Now()) })
}

func makeReady(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: containerName, Image: "flux", Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
}

func makeTerminated(pod *corev1.Pod, exitCode int32, output string, at time.Time) {
	terminated := &corev1.ContainerStateTerminated{
		ExitCode: exitCode, Message: output, Reason: "Error", FinishedAt: metav1.NewTime(at),
	}
	pod.Status.Phase = corev1.PodFailed
	if exitCode == 0 {
		terminated.Reason, pod.Status.Phase = "Completed", corev1.PodSucceeded
	}
	pod.Status.Conditions = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: containerName, Image: "flux", State: corev1.ContainerState{Terminated: terminated},
	}}
}

// deletePod simulates another client that deletes the pod of a rank. The pod exists until remove is called. The clock
// is set to the API server's time of the deletion.
func (b *setupTestEnv) deletePod(rank int) {
	b.t.Helper()
	b.Expect(b.client.Delete(b.ctx, b.pod(rank))).To(Succeed())
	pod := b.pod(rank)
	if at := endOfPod(pod, false).deleted; at.After(b.clock.Now()) {
		b.clock.SetTime(at)
	}
	b.reconciler.terminations.note(pod, false, true)
}

// remove simulates a kubelet that removes a pod, and the watch, which reports it.
func (b *setupTestEnv) remove(rank int) {
	b.t.Helper()
	pod := b.pod(rank)
	b.Expect(b.client.Delete(b.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	b.reconciler.terminations.note(pod, true, true)
}

// finishJob simulates the Job controller, which ends the Job with a condition.
func (b *setupTestEnv) finishJob(kind batchv1.JobConditionType, reason string) {
	b.t.Helper()
	job := b.job()
	now := metav1.NewTime(b.clock.Now())
	job.Status.StartTime = &now
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "the Job controller says so", LastTransitionTime: now,
	})
	b.Expect(b.client.Status().Update(b.ctx, job)).To(Succeed())
}

// collect simulates the garbage collector after a foreground deletion of a Job: it deletes the dependents, and then the
// Job.
func (b *setupTestEnv) collect() {
	b.t.Helper()
	jobs := b.jobs()
	b.Expect(jobs).NotTo(BeEmpty())
	b.collectJob(&jobs[0])
}

func (b *setupTestEnv) collectJob(job *batchv1.Job) {
	b.t.Helper()
	b.Expect(job.DeletionTimestamp).NotTo(BeNil(), "the Job was not deleted")
	b.collectFiles(job)
	for _, pod := range b.pods() {
		if metav1.IsControlledBy(&pod, job) {
			b.Expect(b.client.Delete(b.ctx, &pod, client.GracePeriodSeconds(0))).To(Succeed())
		}
	}
	job.Finalizers = nil
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
}

// collectFiles simulates the garbage collector, which deletes ConfigMap and Secret with the Job that owns them.
func (b *setupTestEnv) collectFiles(job *batchv1.Job) {
	b.t.Helper()
	if files := b.configMap(); files != nil && metav1.IsControlledBy(files, job) {
		b.Expect(b.client.Delete(b.ctx, files)).To(Succeed())
	}
	if secret := b.secret(); secret != nil && metav1.IsControlledBy(secret, job) {
		b.Expect(b.client.Delete(b.ctx, secret)).To(Succeed())
	}
}
