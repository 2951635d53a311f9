package controller

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// The launch of an attempt: at most one Job ever runs for it, whatever crashes in between, and however many replicas of
// the operator try.
//
//  1. The Job is created suspended. Its name, NAME-ATTEMPT, is the idempotency key: of several creations one succeeds.
//  2. Its ConfigMap and its Secret are created. They are immutable, and owned by exactly this Job.
//  3. spec.launch is written with the uid of the Job, under the resourceVersion of the FluxSetup: of several writes one
//     succeeds. From then on this Job is the only one of the attempt, even if it is deleted.
//  4. One patch marks the Job as started and ends its suspension. It changes this Job only, and only while it is not
//     marked: a started Job that another writer suspends is not resumed.
//
// Nothing runs before it is recorded. A creation that arrives late, from a replica that is not the leader any more,
// leaves a Job that never runs; it is deleted.

// launchFieldOwner is the name under which the API server records that spec.launch is this controller's.
const launchFieldOwner = "fluxsetup-launch"

// launch starts the Job of the present attempt, or finds out why it cannot be started. It does not rely on the cache.
func (r *FluxSetupReconciler) launch(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation) error {
	if err := r.refresh(ctx, setup); err != nil {
		return err
	}
	if setup.Spec.Suspend || over(setup) {
		return errStale
	}
	if err := r.mayLaunch(ctx, setup); err != nil {
		return err
	}
	jobs, err := r.readJobs(ctx, r.apiReader, setup)
	if err != nil {
		return err
	}
	observed.job = jobs.current
	if recorded(setup) && jobs.current == nil {
		observed.lost = true
		return nil
	}
	prepared, err := r.prepare(ctx, setup, jobs, observed)
	if isStale(err) {
		return err
	}
	// Recorded even if the Job cannot be started: the time to start counts.
	if recordErr := r.record(ctx, setup, observed, prepared); recordErr != nil {
		return errors.Join(err, recordErr)
	}
	if !prepared || startupExpired(setup, observed.now) {
		return err
	}
	return r.start(ctx, observed.job)
}

// prepare creates what an attempt needs, once nothing is left of any other. It tells whether all of it exists.
func (r *FluxSetupReconciler) prepare(ctx context.Context, setup *v1alpha1.FluxSetup, jobs setupJobs, observed *setupObservation) (prepared bool, err error) {
	if observed.job != nil && started(observed.job) {
		return true, nil
	}
	if observed.waiting, err = r.deleteLeft(ctx, setup, jobs); err != nil || observed.waiting != "" {
		return false, err
	}
	if err := r.ensureService(ctx, setup); err != nil {
		return false, err
	}
	if observed.job == nil {
		r.terminations.forget(client.ObjectKeyFromObject(setup))
		if jobs.inTheWay {
			return false, nameConflict("Job " + jobName(setup))
		}
		job := desiredJob(setup)
		if created, err := createDependent(ctx, r.Client, setupFieldOwner, job); err != nil || !created {
			return false, err
		}
		observed.job = job
	}
	err = errors.Join(r.ensureConfigMap(ctx, setup, observed.job), r.ensureSecret(ctx, setup, observed.job))
	return err == nil, err
}

// mayLaunch reads the Flux past the cache, and rejects a launch that it does not allow: whatever raised spec.attempt, or
// created the FluxSetup, nothing runs for a Flux that is over, or that has another FluxSetup.
func (r *FluxSetupReconciler) mayLaunch(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	var flux v1alpha1.Flux
	err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(setup), &flux)
	ref := flux.Status.SetupRef
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Flux %s: %w", setup.Name, err)
	case err != nil || !metav1.IsControlledBy(setup, &flux) || !flux.DeletionTimestamp.IsZero():
		return errStale
	case ref != nil && ref.UID != string(setup.UID):
		return &rejectedError{reason: v1alpha1.ReasonNotOwned, message: "the Flux of its name has another FluxSetup, of uid " + ref.UID}
	case ended(&flux):
		return &rejectedError{reason: v1alpha1.ReasonFinished, message: "the Flux is over: nothing of it runs again"}
	}
	return nil
}

// record writes spec.launch: with the uid of the Job, if all that the attempt needs exists.
func (r *FluxSetupReconciler) record(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation, prepared bool) error {
	if recorded(setup) || (launched(setup) && !prepared) {
		return nil
	}
	launch := v1alpha1.Launch{Attempt: setup.Spec.Attempt, Time: metav1.NewTime(observed.now)}
	if launched(setup) {
		launch.Time = setup.Spec.Launch.Time
	}
	if prepared {
		launch.JobUID = string(observed.job.UID)
	}
	configuration := desiredLaunch(setup, launch)
	if err := r.Apply(ctx, configuration, client.FieldOwner(launchFieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("recording the launch of FluxSetup %s: %w", setup.Name, err)
	}
	// The API server's response, which is in the configuration, is the newest state there is.
	setup.Spec.Launch = &configuration.Spec.Launch
	setup.ResourceVersion = ptr.Deref(configuration.ResourceVersion, "")
	setup.Generation = ptr.Deref(configuration.Generation, 0)
	return nil
}

// start marks a recorded Job as started, and ends its suspension.
func (r *FluxSetupReconciler) start(ctx context.Context, job *batchv1.Job) error {
	if started(job) {
		return nil
	}
	patch := fmt.Appendf(nil, `[
		{"op": "test", "path": "/metadata/uid", "value": %q},
		{"op": "test", "path": "/metadata/annotations/flux-framework.org~1started", "value": "false"},
		{"op": "replace", "path": "/metadata/annotations/flux-framework.org~1started", "value": "true"},
		{"op": "replace", "path": "/spec/suspend", "value": false}]`, job.UID)
	err := r.Patch(ctx, job, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(setupFieldOwner))
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		// It is gone, or not as it was read: a test of the patch failed.
		return fmt.Errorf("starting Job %s: %w", job.Name, errStale)
	}
	if err != nil {
		return classify("starting Job "+job.Name, err)
	}
	return nil
}
