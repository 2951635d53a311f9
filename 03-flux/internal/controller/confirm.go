package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// readAgain reads the Flux and its FluxSetup from the API server, because the cache may be stale. It updates flux, and
// returns the FluxSetup of that name.
func (r *FluxReconciler) readAgain(ctx context.Context, flux *v1alpha1.Flux) (*v1alpha1.FluxSetup, error) {
	var confirmed v1alpha1.Flux
	err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(flux), &confirmed)
	if apierrors.IsNotFound(err) || (err == nil && !confirmed.DeletionTimestamp.IsZero()) {
		return nil, fmt.Errorf("reading Flux %s, which is deleted: %w", flux.Name, errStale)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Flux %s: %w", flux.Name, err)
	}
	*flux = confirmed
	return readSetup(ctx, r.apiReader, flux)
}

// readSetup reads the FluxSetup that has the name of a Flux, whether the Flux owns it or not; nil if there is none.
func readSetup(ctx context.Context, reader client.Reader, flux *v1alpha1.Flux) (*v1alpha1.FluxSetup, error) {
	var setup v1alpha1.FluxSetup
	err := reader.Get(ctx, client.ObjectKeyFromObject(flux), &setup)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading FluxSetup %s: %w", flux.Name, err)
	}
	return &setup, nil
}

// refresh reads the FluxSetup from the API server instead of the cache.
func (r *FluxSetupReconciler) refresh(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	var fresh v1alpha1.FluxSetup
	err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(setup), &fresh)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading FluxSetup %s: %w", setup.Name, err)
	case err != nil || fresh.UID != setup.UID || !fresh.DeletionTimestamp.IsZero():
		return errStale
	}
	*setup = fresh
	return nil
}

// readCurrentJob reads the Job of the current attempt from the API server instead of the cache.
func (r *FluxSetupReconciler) readCurrentJob(ctx context.Context, observed *setupObservation) error {
	cached := observed.job
	observed.job = nil
	var job batchv1.Job
	err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(cached), &job)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Job %s: %w", cached.Name, err)
	case err != nil || job.UID != cached.UID:
		return errStale
	}
	observed.job = &job
	return nil
}
