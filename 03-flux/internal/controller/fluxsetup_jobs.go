package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// setupJobs are the Jobs that matter to a FluxSetup.
type setupJobs struct {
	// current is the Job of the current attempt; nil if there is none.
	current *batchv1.Job
	// inTheWay: a Job that the FluxSetup does not own has the name of the current attempt's Job.
	inTheWay bool
	// superseded are the Jobs to delete.
	superseded []batchv1.Job
	// predecessor is the name of a Job that the garbage collector is about to delete; "" if there is none.
	predecessor string
}

// readJobs finds the Jobs of a FluxSetup by their labels, and the one of the current attempt by its name too: a Job of
// this name may not be owned by the FluxSetup, or may have lost its labels.
func (r *FluxSetupReconciler) readJobs(ctx context.Context, reader client.Reader, setup *v1alpha1.FluxSetup) (setupJobs, error) {
	var jobs setupJobs
	var named batchv1.Job
	err := reader.Get(ctx, client.ObjectKey{Namespace: setup.Namespace, Name: jobName(setup)}, &named)
	if client.IgnoreNotFound(err) != nil {
		return jobs, fmt.Errorf("reading Job %s: %w", jobName(setup), err)
	}
	if err == nil {
		jobs.add(setup, &named)
	}
	var found batchv1.JobList
	if err := reader.List(ctx, &found, client.InNamespace(setup.Namespace), client.MatchingLabels(podSelector(setup))); err != nil {
		return jobs, fmt.Errorf("listing Jobs of FluxSetup %s: %w", setup.Name, err)
	}
	for i := range found.Items {
		if found.Items[i].Name != jobName(setup) {
			jobs.add(setup, &found.Items[i])
		}
	}
	return jobs, nil
}

func (j *setupJobs) add(setup *v1alpha1.FluxSetup, job *batchv1.Job) {
	role := roleOf(setup, job)
	switch {
	case role != jobCurrent:
	case !proven(setup, job):
		role = jobNotOwned
	case outdated(setup, job):
		role = jobSuperseded
	}
	switch role {
	case jobCurrent:
		j.current = job
	case jobSuperseded:
		j.superseded = append(j.superseded, *job)
	case jobOfPredecessor:
		j.predecessor = job.Name
	}
	j.inTheWay = j.inTheWay || (job.Name == jobName(setup) && (role == jobNotOwned || role == jobOfPredecessor))
}

// jobRole describes what a Job is to a FluxSetup.
type jobRole int

const (
	// jobNotOwned: the FluxSetup does not own it.
	jobNotOwned jobRole = iota
	// jobOfPredecessor: a deleted FluxSetup of the same name owns it, and the garbage collector deletes it.
	jobOfPredecessor
	// jobCurrent: it is the Job of the current attempt.
	jobCurrent
	// jobSuperseded: it is the Job of an earlier attempt, or was created too late, and never runs for the current
	// attempt.
	jobSuperseded
	// jobUnknown: the FluxSetup that was read is older than the Job.
	jobUnknown
)

// roleOf returns the role of a Job. Attempt numbers only rise, and a recorded uid does not change. So a Job that is
// superseded according to a stale FluxSetup is superseded according to the newest one too.
func roleOf(setup *v1alpha1.FluxSetup, job *batchv1.Job) jobRole {
	switch {
	// The uid decides, because other clients can edit the owner references.
	case jobRecorded(setup) && setup.Spec.Launch.JobUID == string(job.UID):
		return jobCurrent
	case !metav1.IsControlledBy(job, setup) && isOurs(job) && metav1.GetControllerOf(job).Name == setup.Name:
		return jobOfPredecessor
	case !metav1.IsControlledBy(job, setup):
		return jobNotOwned
	}
	attempt, err := strconv.Atoi(job.Labels[labelAttempt])
	if job.Name == jobName(setup) {
		attempt, err = int(setup.Spec.Attempt), nil
	}
	switch {
	case err != nil || int32(attempt) > setup.Spec.Attempt:
		return jobUnknown
	case int32(attempt) < setup.Spec.Attempt || jobRecorded(setup):
		return jobSuperseded
	// It was deleted before it was recorded, so it has not run.
	case !job.DeletionTimestamp.IsZero() && !started(job):
		return jobSuperseded
	}
	return jobCurrent
}

// proven reports whether there is more evidence than spec.launch that the FluxSetup owns a Job. A user who may write
// FluxSetups can name any Job there, and would have it deleted. If another client has removed the owner reference, our
// labels on the Job and our status, which users do not write, show that the Job was observed before.
func proven(setup *v1alpha1.FluxSetup, job *batchv1.Job) bool {
	return metav1.IsControlledBy(job, setup) || (labelled(setup, job) &&
		current(setup) && trueCondition(setup.Status.Conditions, v1alpha1.ConditionAccepted) != nil &&
		setup.Status.ConfigHash == job.Annotations[annotationConfigHash])
}

// outdated reports whether another version of the operator created the Job, for other files, and the Job has not run.
func outdated(setup *v1alpha1.FluxSetup, job *batchv1.Job) bool {
	return job.Annotations[annotationConfigHash] != clusterOf(setup).Hash() && !jobRecorded(setup) && !started(job)
}

// deleteLeft deletes what is left of other attempts, and returns a description of what still exists; "" if nothing
// does.
func (r *FluxSetupReconciler) deleteLeft(ctx context.Context, setup *v1alpha1.FluxSetup, jobs setupJobs) (left string, err error) {
	if err := r.deleteSuperseded(ctx, jobs); err != nil {
		return "", err
	}
	switch {
	case len(jobs.superseded) > 0:
		return "Job " + jobs.superseded[0].Name, nil
	case jobs.predecessor != "":
		return "Job " + jobs.predecessor, nil
	}
	return r.podLeft(ctx, setup)
}

func (r *FluxSetupReconciler) deleteSuperseded(ctx context.Context, jobs setupJobs) error {
	var errs []error
	for i := range jobs.superseded {
		errs = append(errs, r.deleteJob(ctx, &jobs.superseded[i]))
	}
	return errors.Join(errs...)
}

// deleteEnded deletes the Job of an attempt that has ended, if the Job still runs, or runs the command again. A Job
// that has ended by itself is kept.
func (r *FluxSetupReconciler) deleteEnded(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	if !kept(setup, job) {
		return r.deleteJob(ctx, job)
	}
	if jobResult(job) == nil {
		pods, err := r.podsOf(ctx, r.Client, job)
		if err != nil {
			return err
		}
		if replacementOf(setup.Status.LeaderPod, pods) != "" {
			return r.deleteJob(ctx, job)
		}
	}
	return r.ownJob(ctx, setup, job)
}

// deleteJob deletes exactly this Job, and only in the state that was read: if it has ended since, the evidence would be
// deleted with it. Foreground deletion removes the dependents first. So if the Job does not exist, neither do its pods,
// ConfigMap and Secret.
func (r *FluxSetupReconciler) deleteJob(ctx context.Context, job *batchv1.Job) error {
	if !job.DeletionTimestamp.IsZero() {
		return nil
	}
	err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion})
	if err == nil || isGone(err) {
		return nil
	}
	return classify("deleting Job "+job.Name, err)
}

// podLeft returns a pod that has the label of the FluxSetup, "" if there is none. It is called when no attempt should
// have a pod. The owner does not matter, because the garbage collector removes the owner reference of pods that are
// orphaned; but one of those that has ended stays until a user deletes it, and is not waited for. The cache is read first:
// a pod in it is enough.
func (r *FluxSetupReconciler) podLeft(ctx context.Context, setup *v1alpha1.FluxSetup) (string, error) {
	for _, reader := range []client.Reader{r.Client, r.apiReader} {
		var pods corev1.PodList
		err := reader.List(ctx, &pods, client.InNamespace(setup.Namespace), client.MatchingLabels(podSelector(setup)), client.UnsafeDisableDeepCopy)
		if err != nil {
			return "", fmt.Errorf("listing Pods of FluxSetup %s: %w", setup.Name, err)
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
			if !ended || metav1.GetControllerOf(pod) != nil {
				return "Pod " + pod.Name, nil
			}
		}
	}
	return "", nil
}

// podsOf lists the pods of one Job by the label that the Job controller sets. They are not copied, so they must not be
// changed.
func (r *FluxSetupReconciler) podsOf(ctx context.Context, reader client.Reader, job *batchv1.Job) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := reader.List(ctx, &pods, client.InNamespace(job.Namespace),
		client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing Pods of Job %s: %w", job.Name, err)
	}
	ours := make([]corev1.Pod, 0, len(pods.Items))
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.UID == job.UID && rankOf(&pod) >= 0 {
			ours = append(ours, pod)
		}
	}
	return ours, nil
}

// ownJob makes the FluxSetup the controller of its Job again if another client has removed the owner reference: then
// the Job is deleted with the FluxSetup, and its events trigger reconciliations. Another controller is not replaced.
// ownJob also restores removed labels, because the next attempt finds the Job by them.
func (r *FluxSetupReconciler) ownJob(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	owned := metav1.GetControllerOf(job) != nil
	if (owned && labelled(setup, job)) || !job.DeletionTimestamp.IsZero() {
		return nil
	}
	// The resourceVersion is needed because a merge patch replaces the whole list of owner references.
	metadata := map[string]any{"uid": job.UID, "resourceVersion": job.ResourceVersion, "labels": attemptLabels(setup)}
	if !owned {
		// The garbage collector may have orphaned the Job: the cache may still hold a deleted FluxSetup.
		fresh := *setup
		if err := r.refresh(ctx, &fresh); err != nil {
			return err
		}
		owners := slices.DeleteFunc(slices.Clone(job.OwnerReferences), func(owner metav1.OwnerReference) bool { return owner.UID == setup.UID })
		metadata["ownerReferences"] = append(owners, *metav1.NewControllerRef(setup, v1alpha1.SchemeGroupVersion.WithKind("FluxSetup")))
	}
	err := r.patchJob(ctx, job, "owning Job "+job.Name, map[string]any{"metadata": metadata})
	if err == nil && (metav1.GetControllerOf(job) == nil || !labelled(setup, job)) {
		return changedByAdmission("metadata", "Job "+job.Name)
	}
	return err
}

// labelled reports whether a Job has the labels of the current attempt.
func labelled(setup *v1alpha1.FluxSetup, job *batchv1.Job) bool {
	return labels.SelectorFromSet(attemptLabels(setup)).Matches(labels.Set(job.Labels))
}

// followDeadline gives the Job the deadline of the spec. It is the only field of a started Job that may change.
func (r *FluxSetupReconciler) followDeadline(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	if ptr.Equal(job.Spec.ActiveDeadlineSeconds, setup.Spec.ActiveDeadlineSeconds) {
		return nil
	}
	err := r.patchJob(ctx, job, "changing the deadline of Job "+job.Name, map[string]any{
		// The uid prevents a change of another Job that has the same name. The resourceVersion prevents a replica that is
		// no longer the leader from overwriting a newer deadline.
		"metadata": map[string]any{"uid": job.UID, "resourceVersion": job.ResourceVersion},
		"spec":     map[string]any{"activeDeadlineSeconds": setup.Spec.ActiveDeadlineSeconds},
	})
	if err == nil && !ptr.Equal(job.Spec.ActiveDeadlineSeconds, setup.Spec.ActiveDeadlineSeconds) {
		return changedByAdmission("spec.activeDeadlineSeconds", "Job "+job.Name)
	}
	return err
}

// patchJob applies a merge patch to the Job, and updates job to the API server's response.
func (r *FluxSetupReconciler) patchJob(ctx context.Context, job *batchv1.Job, action string, changes map[string]any) error {
	patch, err := json.Marshal(changes)
	if err != nil {
		return fmt.Errorf("%s: encoding the patch: %w", action, err)
	}
	err = r.Patch(ctx, job, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(setupFieldOwner))
	switch {
	case err == nil:
		return nil
	case isGone(err):
		return errStale
	}
	return classify(action, err)
}
