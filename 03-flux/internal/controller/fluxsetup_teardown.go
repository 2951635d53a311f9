package controller

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// tearDown deletes the dependents of a suspended FluxSetup: the Job with its own dependents, and the Service once the
// pods no longer exist. Like launch it does not rely on the cache, which may not show yet that the FluxSetup was
// resumed.
func (r *FluxSetupReconciler) tearDown(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation) error {
	if err := r.refresh(ctx, setup); err != nil {
		return err
	}
	if !setup.Spec.Suspend {
		return errStale
	}
	jobs, err := r.readJobs(ctx, r.apiReader, setup)
	if err != nil {
		return err
	}
	if job := jobs.current; job != nil {
		ended, err := r.endedBefore(ctx, setup, job)
		if err != nil {
			return err
		}
		if ended {
			// The end is written before anything is deleted.
			observed.job = job
			return nil
		}
		return r.deleteJob(ctx, job)
	}
	if left, err := r.deleteLeft(ctx, setup, jobs); err != nil || left != "" {
		return err
	}
	if err := r.deleteService(ctx, setup); err != nil {
		return err
	}
	r.terminations.forget(client.ObjectKeyFromObject(setup))
	observed.cleared = true
	return nil
}

// endedBefore reports whether a Job that is to be deleted ended before it could be suspended, and the status does not
// say so yet. Either the Job controller has reported the end, or rank 0 has ended with 0. The Job controller may count
// the end of rank 0 late, or not at all as long as another container runs in the pod. What rank 0 reported is kept for
// the report, because the cache may be stale.
func (r *FluxSetupReconciler) endedBefore(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) (bool, error) {
	if attemptEnded(setup) || !job.DeletionTimestamp.IsZero() {
		return false, nil
	}
	// The operator did not start a Job that is not recorded, so the state of its pods is not an end of the attempt.
	if jobResult(job) != nil || !jobRecorded(setup) {
		return jobResult(job) != nil, nil
	}
	pods, err := r.podsOf(ctx, r.apiReader, job)
	if err != nil {
		return false, err
	}
	for i := range pods {
		if rankOf(&pods[i]) == 0 && endOfPod(&pods[i], false).succeeded() {
			r.terminations.note(&pods[i], false, false)
		}
	}
	return r.terminations.of(client.ObjectKeyFromObject(setup), job.UID).leader.succeeded(), nil
}

// deleteService deletes the Service if the FluxSetup owns it.
func (r *FluxSetupReconciler) deleteService(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	var service corev1.Service
	err := r.Get(ctx, client.ObjectKeyFromObject(setup), &service)
	if err == nil && metav1.IsControlledBy(&service, setup) && service.DeletionTimestamp.IsZero() {
		err = r.Delete(ctx, &service, client.Preconditions{UID: &service.UID, ResourceVersion: &service.ResourceVersion})
	}
	if err == nil || isGone(err) {
		return nil
	}
	return classify("deleting Service "+setup.Name, err)
}
