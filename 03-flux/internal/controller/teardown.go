package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// tearDown deletes all that exists of a suspended FluxSetup: the Job, with what it owns, and when its pods are gone the
// Service. Like launch it does not rely on the cache, which may not have that the FluxSetup was resumed.
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
		if !over(setup) && verdictOf(job) != nil && job.DeletionTimestamp.IsZero() {
			// It ended before it could be suspended. That is written before anything is deleted.
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

// deleteService deletes the Service, if it is the FluxSetup's.
func (r *FluxSetupReconciler) deleteService(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	var service corev1.Service
	err := r.Get(ctx, client.ObjectKeyFromObject(setup), &service)
	if err == nil && metav1.IsControlledBy(&service, setup) && service.DeletionTimestamp.IsZero() {
		err = r.Delete(ctx, &service, client.Preconditions{UID: &service.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Service %s: %w", setup.Name, err)
	}
	return nil
}
