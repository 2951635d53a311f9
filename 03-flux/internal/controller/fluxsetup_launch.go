package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// The launch of an attempt: at most one Job ever runs for it, whatever crashes in between, and however many replicas of
// the operator try.
//
//  1. The Job is created suspended. Its name, NAME-ATTEMPT, is the idempotency key: if several replicas create it, one succeeds.
//  2. Its ConfigMap and its Secret are created. They are immutable, and owned by exactly this Job, which has the
//     hashes of their content in its annotations. Objects that another client has created under their names are not
//     used.
//  3. spec.launch is written with the uid of the Job. The write contains the resourceVersion of the FluxSetup that was
//     read, so only one such write succeeds. From then on this Job is the only one of the attempt, even if it is
//     deleted.
//  4. One patch marks the Job as started and resumes it. It tests that the Job is the recorded one and is not marked yet.
//     So a started Job that another writer has suspended is not resumed.
//
// Nothing runs before it is recorded. A replica that is no longer the leader may have sent a request to create a Job, and
// the request may arrive late. That creates a Job that never runs; it is deleted.

// launchFieldOwner is the name under which the API server records that this controller owns spec.launch.
const launchFieldOwner = "fluxsetup-launch"

// launch starts the Job of the current attempt, or finds out why it cannot be started. It does not rely on the cache.
func (r *FluxSetupReconciler) launch(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation) error {
	if err := r.refresh(ctx, setup); err != nil {
		return err
	}
	if setup.Spec.Suspend || attemptEnded(setup) {
		return errStale
	}
	if !writtenByFlux(setup, "attempt") {
		return &rejectedError{reason: v1alpha1.ReasonSetupChanged, message: setupChanged(setup, "attempt")}
	}
	if err := r.mayLaunch(ctx, setup); err != nil {
		return err
	}
	jobs, err := r.readJobs(ctx, r.apiReader, setup)
	if err != nil {
		return err
	}
	observed.job = jobs.current
	if observed.lost = jobRecorded(setup) && lost(jobs.current); observed.lost {
		return nil
	}
	prepared, err := r.prepare(ctx, setup, jobs, observed)
	if isStale(err) {
		return err
	}
	// The launch is recorded even if the Job cannot be started, because startupTimeoutSeconds counts from it.
	if recordErr := r.record(ctx, setup, observed, prepared); recordErr != nil {
		return errors.Join(err, recordErr)
	}
	if !prepared || changed(setup, observed.job) {
		return err
	}
	return r.start(ctx, observed.job, observed.now)
}

// prepare creates what an attempt needs, once nothing is left of any other attempt. prepared is true if everything
// exists.
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
		certificate, err := r.certificateOf(setup)
		if err != nil {
			return false, err
		}
		job := desiredJob(setup)
		job.Annotations[annotationCertificates] = hashOf(certificate)
		if err := createDependent(ctx, r.Client, setupFieldOwner, job); err != nil {
			return false, err
		}
		observed.job = job
	}
	err = errors.Join(r.ensureConfigMap(ctx, setup, observed.job), r.ensureSecret(ctx, setup, observed.job))
	if err == nil {
		err = r.confirmConfigMap(ctx, observed.job)
	}
	return err == nil, err
}

// mayLaunch reads the Flux from the API server, and rejects a launch that the Flux does not allow. Whatever raised spec.attempt
// or created the FluxSetup, nothing runs for a Flux that has ended, or that has recorded another FluxSetup. Nothing runs either
// for a Flux that has recorded none: if this FluxSetup were deleted, the Flux controller would create another one, and the
// command would run again. Nor does anything run for a Flux that is suspended: its FluxSetup is not suspended yet, or another
// client has resumed it. The Flux controller suspends it.
func (r *FluxSetupReconciler) mayLaunch(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	var flux v1alpha1.Flux
	err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(setup), &flux)
	ref := flux.Status.SetupRef
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Flux %s: %w", setup.Name, err)
	case err != nil || !metav1.IsControlledBy(setup, &flux) || !flux.DeletionTimestamp.IsZero() || ref == nil:
		return errStale
	case ref.UID != string(setup.UID):
		return &rejectedError{reason: v1alpha1.ReasonNotOwned, message: "the Flux of the same name has another FluxSetup, of uid " + ref.UID}
	case ended(&flux):
		return &rejectedError{reason: v1alpha1.ReasonFinished, message: "the Flux has ended: its command does not run again"}
	case flux.Spec.Suspend:
		return errStale
	}
	return nil
}

// record writes spec.launch. It includes the uid of the Job if everything that the attempt needs exists.
func (r *FluxSetupReconciler) record(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation, prepared bool) error {
	if jobRecorded(setup) || (launchRecorded(setup) && !prepared) {
		return nil
	}
	launch := v1alpha1.Launch{Attempt: setup.Spec.Attempt, Time: metav1.NewTime(observed.now)}
	if prepared {
		launch.JobUID = string(observed.job.UID)
	}
	stored, err := apply(ctx, r.Client, desiredLaunch(setup, launch), client.FieldOwner(launchFieldOwner), client.ForceOwnership)
	if err != nil {
		return classify("recording the launch of FluxSetup "+setup.Name, err)
	}
	// The API server's response is the newest state.
	var after v1alpha1.FluxSetup
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, &after); err != nil {
		return fmt.Errorf("reading the response to an apply: %w", err)
	}
	*setup = after
	if !launchRecorded(setup) || setup.Spec.Launch.JobUID != launch.JobUID {
		return changedByAdmission("spec.launch", "FluxSetup "+setup.Name)
	}
	return nil
}

// start marks a recorded Job as started, and resumes it. startupTimeoutSeconds may have expired, because the operator was
// down or a dependent could not be created. The Job is started anyway, and the timeout counts again from now on.
func (r *FluxSetupReconciler) start(ctx context.Context, job *batchv1.Job, now time.Time) error {
	if started(job) {
		return nil
	}
	patch := fmt.Appendf(nil, `[
		{"op": "test", "path": "/metadata/uid", "value": %q},
		{"op": "test", "path": "/metadata/annotations/flux-framework.org~1started", "value": "false"},
		{"op": "replace", "path": "/metadata/annotations/flux-framework.org~1started", "value": "true"},
		{"op": "add", "path": "/metadata/annotations/flux-framework.org~1start-time", "value": %q},
		{"op": "replace", "path": "/spec/suspend", "value": false}]`, job.UID, now.UTC().Format(time.RFC3339))
	err := r.Patch(ctx, job, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(setupFieldOwner))
	switch {
	case err == nil:
		return nil
	case isGone(err):
		return fmt.Errorf("starting Job %s: %w", job.Name, errStale)
	case apierrors.IsInvalid(err):
		// Either a test of the patch failed, because the Job has changed since it was read, or the start itself is
		// rejected.
		fresh := setupObservation{job: job}
		if err := r.readCurrentJob(ctx, &fresh); err != nil {
			return err
		}
		if started(fresh.job) {
			return fmt.Errorf("starting Job %s: %w", job.Name, errStale)
		}
	}
	return classify("starting Job "+job.Name, err)
}
