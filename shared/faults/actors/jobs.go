package actors

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/faults"
)

// Jobs is the Job controller for Indexed Jobs whose pods are not replaced (a backoffLimit of 0, and parallelism equal to
// completions), and a scheduler that finds room for each pod on a node of the name "node". The first index of the success policy
// decides. It has no deadline.
type Jobs struct{}

// Name is that of the controller.
func (Jobs) Name() string { return "job-controller" }

// Act makes one step for one Job: ended pods are counted and released, what still runs is deleted, the Job ends, or a pod is
// created.
func (Jobs) Act(ctx context.Context, s *faults.State) (bool, error) {
	jobs, err := faults.All[batchv1.Job](s)
	if err != nil {
		return false, err
	}
	pods, err := faults.All[corev1.Pod](s)
	if err != nil {
		return false, err
	}
	for _, pod := range pods {
		if slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) && !slices.ContainsFunc(jobs, func(job *batchv1.Job) bool { return metav1.IsControlledBy(pod, job) }) {
			return true, release(ctx, s, pod)
		}
	}
	for _, job := range jobs {
		own := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, job) })
		for _, step := range []func(context.Context, *faults.State, *batchv1.Job, []*corev1.Pod) (bool, error){track, finish, suspend, complete} {
			if acted, err := step(ctx, s, job, own); acted || err != nil {
				return acted, err
			}
		}
	}
	return false, nil
}

// release removes the finalizer by which the Job controller keeps a pod until it is counted.
func release(ctx context.Context, s *faults.State, pod *corev1.Pod) error {
	pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(one string) bool { return one == batchv1.JobTrackingFinalizer })
	return client.IgnoreNotFound(s.Client.Update(ctx, pod))
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func indexOf(pod *corev1.Pod) string { return pod.Annotations[batchv1.JobCompletionIndexAnnotation] }

// track counts a pod that has ended or is being deleted, and releases it.
func track(ctx context.Context, s *faults.State, job *batchv1.Job, pods []*corev1.Pod) (bool, error) {
	for _, pod := range pods {
		ends := hasEnded(pod) || pod.DeletionTimestamp != nil
		if !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) || (!ends && job.DeletionTimestamp == nil) {
			continue
		}
		switch {
		case job.DeletionTimestamp != nil || isTrue(job, batchv1.JobSuspended):
		case pod.Status.Phase == corev1.PodSucceeded:
			job.Status.Succeeded++
			judge(s, job, pod)
		default:
			job.Status.Failed++
			judge(s, job, pod)
		}
		if job.DeletionTimestamp == nil {
			if err := s.Client.Status().Update(ctx, job); err != nil {
				return true, err
			}
		}
		return true, release(ctx, s, pod)
	}
	return false, nil
}

// judge adds the condition from which on a Job ends.
func judge(s *faults.State, job *batchv1.Job, pod *corev1.Pod) {
	policy := job.Spec.SuccessPolicy
	switch {
	case isDecided(job):
	case pod.Status.Phase != corev1.PodSucceeded:
		set(s, job, batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonBackoffLimitExceeded)
	case policy != nil && ptr.Deref(policy.Rules[0].SucceededIndexes, "") == indexOf(pod):
		set(s, job, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonSuccessPolicy)
	}
}

func set(s *faults.State, job *batchv1.Job, kind batchv1.JobConditionType, status corev1.ConditionStatus, reason string) {
	next := batchv1.JobCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(s.Clock.Now())}
	job.Status.Conditions = append(slices.DeleteFunc(job.Status.Conditions, func(one batchv1.JobCondition) bool { return one.Type == kind }), next)
}

func isTrue(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(one batchv1.JobCondition) bool { return one.Type == kind && one.Status == corev1.ConditionTrue })
}

// isDecided reports whether a Job ends as soon as its pods have.
func isDecided(job *batchv1.Job) bool {
	return isTrue(job, batchv1.JobSuccessCriteriaMet) || isTrue(job, batchv1.JobFailureTarget)
}

func isOver(job *batchv1.Job) bool {
	return isTrue(job, batchv1.JobComplete) || isTrue(job, batchv1.JobFailed)
}

// finish deletes what runs in a Job that is decided, and ends it when all pods have ended.
func finish(ctx context.Context, s *faults.State, job *batchv1.Job, pods []*corev1.Pod) (bool, error) {
	if job.DeletionTimestamp != nil || isOver(job) || !isDecided(job) {
		return false, nil
	}
	running := slices.DeleteFunc(slices.Clone(pods), hasEnded)
	for _, pod := range running {
		if pod.DeletionTimestamp == nil {
			return true, client.IgnoreNotFound(s.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}))
		}
	}
	if len(running) > 0 {
		return false, nil
	}
	now := metav1.NewTime(s.Clock.Now())
	if isTrue(job, batchv1.JobSuccessCriteriaMet) {
		job.Status.CompletionTime = &now
		set(s, job, batchv1.JobComplete, corev1.ConditionTrue, batchv1.JobReasonSuccessPolicy)
	} else {
		set(s, job, batchv1.JobFailed, corev1.ConditionTrue, batchv1.JobReasonBackoffLimitExceeded)
	}
	job.Status.Active, job.Status.Ready, job.Status.Terminating = 0, new(int32), new(int32)
	return true, s.Client.Status().Update(ctx, job)
}

// suspend deletes the pods of a suspended Job, and reports both suspension and resume.
func suspend(ctx context.Context, s *faults.State, job *batchv1.Job, pods []*corev1.Pod) (bool, error) {
	if job.DeletionTimestamp != nil || isOver(job) {
		return false, nil
	}
	is := isTrue(job, batchv1.JobSuspended)
	if !ptr.Deref(job.Spec.Suspend, false) {
		if !is && job.Status.StartTime != nil {
			return false, nil
		}
		if is {
			set(s, job, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed")
		}
		job.Status.StartTime = new(metav1.NewTime(s.Clock.Now()))
		return true, s.Client.Status().Update(ctx, job)
	}
	if !is {
		set(s, job, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended")
		job.Status.StartTime = nil
		return true, s.Client.Status().Update(ctx, job)
	}
	for _, pod := range pods {
		if !hasEnded(pod) && pod.DeletionTimestamp == nil {
			return true, client.IgnoreNotFound(s.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}))
		}
	}
	return false, nil
}

// complete creates the pod of an index that has none.
func complete(ctx context.Context, s *faults.State, job *batchv1.Job, pods []*corev1.Pod) (bool, error) {
	if job.DeletionTimestamp != nil || isDecided(job) || ptr.Deref(job.Spec.Suspend, false) {
		return false, nil
	}
	for index := range int(ptr.Deref(job.Spec.Parallelism, 1)) {
		if !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return indexOf(pod) == strconv.Itoa(index) }) {
			return true, s.Client.Create(ctx, podOfJob(job, index))
		}
	}
	return false, nil
}

func podOfJob(job *batchv1.Job, index int) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.GenerateName, pod.Namespace = fmt.Sprintf("%s-%d-", job.Name, index), job.Namespace
	pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, strconv.Itoa(index))
	pod.Spec.Hostname, pod.Spec.NodeName = fmt.Sprintf("%s-%d", job.Name, index), "node"
	return pod
}
