package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// The launch of an attempt: exactly one Job is made for it, whatever crashes in between.
//
//  1. spec.launch is written, with the attempt and a nonce, under a lock: of two that try, one does it.
//  2. The Job is created, not applied, and carries the nonce. Whoever finds it there knows by the nonce whether
//     it is the one that was meant.
//  3. spec.launch.jobUID is written. From then on there was a Job, and if it is gone, so is the attempt.
//
// A Job that somebody deletes between 2 and 3 cannot be told from one that was never made: it is made once more.

// launchFieldOwner is the name under which the API server records that the launch is this controller's.
const launchFieldOwner = "fluxsetup-launch"

// kinship says what a Job of the name is to the present attempt of a FluxSetup.
type kinship int

const (
	// jobAbsent: there is none.
	jobAbsent kinship = iota
	// jobPresent: it is the attempt's.
	jobPresent
	// jobOlder: it is that of an earlier attempt.
	jobOlder
	// jobUnknown: the FluxSetup owns it and knows nothing of it.
	jobUnknown
	// jobForeign: it is not the FluxSetup's.
	jobForeign
)

// kinshipOf decides it. As attempts only rise, what is older by a FluxSetup that is itself out of date is older
// all the more by one that is not.
func kinshipOf(setup *v1alpha1.FluxSetup, job *batchv1.Job) kinship {
	if job == nil {
		return jobAbsent
	}
	if !metav1.IsControlledBy(job, setup) {
		return jobForeign
	}
	if launched(setup) {
		uid := setup.Spec.Launch.JobUID
		if uid == string(job.UID) || (uid == "" && job.Annotations[annotationNonce] == setup.Spec.Launch.Nonce) {
			return jobPresent
		}
	}
	if attempt, err := strconv.Atoi(job.Labels[labelAttempt]); err == nil && int32(attempt) < setup.Spec.Attempt {
		return jobOlder
	}
	return jobUnknown
}

// launched tells whether the launch of the present attempt is written down.
func launched(setup *v1alpha1.FluxSetup) bool {
	return setup.Spec.Launch != nil && setup.Spec.Launch.Attempt == setup.Spec.Attempt
}

// startupEnd is when the time is over in which the present attempt has to reach its quorum.
func startupEnd(setup *v1alpha1.FluxSetup) time.Time {
	return setup.Spec.Launch.Time.Add(time.Duration(setup.Spec.StartupTimeoutSeconds) * time.Second)
}

func startupOver(setup *v1alpha1.FluxSetup, now time.Time) bool {
	return launched(setup) && !now.Before(startupEnd(setup))
}

// launch makes the Job of the present attempt, or finds out why there is none. It trusts the cache in nothing.
func (r *FluxSetupReconciler) launch(ctx context.Context, setup *v1alpha1.FluxSetup, seen *setupFacts) error {
	if err := r.refresh(ctx, setup); err != nil {
		return err
	}
	if setup.Spec.Suspend || over(setup) {
		return errStale
	}
	if !launched(setup) {
		launch := v1alpha1.Launch{Attempt: setup.Spec.Attempt, Nonce: r.NewNonce(), Time: metav1.NewTime(seen.now)}
		if err := r.writeLaunch(ctx, setup, launch); err != nil {
			return err
		}
	}

	job, err := readJob(ctx, r.APIReader, setup)
	if err != nil {
		return err
	}
	switch kinshipOf(setup, job) {
	case jobPresent:
		seen.job = job
		return r.keep(ctx, setup, seen)
	case jobOlder:
		seen.waiting = "Job " + job.Name
		return r.deleteJob(ctx, job, nil)
	}
	switch {
	case setup.Spec.Launch.JobUID != "":
		seen.lost = true
		return nil
	case job != nil:
		return nameConflict("Job", job.Name)
	}
	return r.makeAll(ctx, setup, seen)
}

// makeAll makes all that an attempt needs, and the Job last, once there is nothing left of any other.
func (r *FluxSetupReconciler) makeAll(ctx context.Context, setup *v1alpha1.FluxSetup, seen *setupFacts) error {
	left, err := r.podsLeft(ctx, setup)
	if err != nil {
		return err
	}
	if left != "" {
		seen.waiting = "Pod " + left
		return nil
	}
	err = errors.Join(r.ensureSecret(ctx, setup), r.ensureConfigMap(ctx, setup), r.ensureService(ctx, setup))
	if err != nil {
		return err
	}
	if startupOver(setup, seen.now) {
		// It is too late. But whether the API server would have had the Job is worth knowing.
		return r.createChild(ctx, desiredJob(setup), "Job", client.DryRunAll, client.DisableReadYourWritesConsistency)
	}

	r.words.forget(client.ObjectKeyFromObject(setup))
	job := desiredJob(setup)
	if err := r.createChild(ctx, job, "Job"); err != nil {
		return err
	}
	seen.job = job
	return r.rememberJob(ctx, setup, job)
}

// keep looks after an attempt whose Job is there.
func (r *FluxSetupReconciler) keep(ctx context.Context, setup *v1alpha1.FluxSetup, seen *setupFacts) error {
	if err := r.rememberJob(ctx, setup, seen.job); err != nil {
		return err
	}
	if verdictOf(seen.job) != nil || !seen.job.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := r.followDeadline(ctx, setup, seen.job); err != nil {
		return err
	}
	return errors.Join(r.ensureConfigMap(ctx, setup), r.ensureService(ctx, setup))
}

// refresh reads the FluxSetup past the cache.
func (r *FluxSetupReconciler) refresh(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	var fresh v1alpha1.FluxSetup
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(setup), &fresh); err != nil {
		return fmt.Errorf("reading FluxSetup %s: %w", setup.Name, err)
	}
	if fresh.UID != setup.UID || !fresh.DeletionTimestamp.IsZero() {
		return errStale
	}
	*setup = fresh
	return nil
}

// rememberJob writes the uid of the attempt's Job down, if it is not.
func (r *FluxSetupReconciler) rememberJob(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	if setup.Spec.Launch.JobUID != "" {
		return nil
	}
	launch := *setup.Spec.Launch
	launch.JobUID = string(job.UID)
	return r.writeLaunch(ctx, setup, launch)
}

// launchConfiguration is the apply configuration of a FluxSetup that says nothing but what its launch is.
type launchConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata"`

	Spec struct {
		Launch v1alpha1.Launch `json:"launch"`
	} `json:"spec"`
}

// IsApplyConfiguration marks it as one.
func (*launchConfiguration) IsApplyConfiguration() {}

// writeLaunch writes spec.launch. The resourceVersion is a lock: it is written only to the FluxSetup that was
// read, and nobody has changed since.
func (r *FluxSetupReconciler) writeLaunch(ctx context.Context, setup *v1alpha1.FluxSetup, launch v1alpha1.Launch) error {
	configuration := &launchConfiguration{
		TypeMetaApplyConfiguration: *metav1ac.TypeMeta().WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("FluxSetup"),
		ObjectMetaApplyConfiguration: metav1ac.ObjectMeta().WithName(setup.Name).WithNamespace(setup.Namespace).
			WithUID(setup.UID).WithResourceVersion(setup.ResourceVersion),
	}
	configuration.Spec.Launch = launch
	if err := r.Apply(ctx, configuration, client.FieldOwner(launchFieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing the launch of FluxSetup %s: %w", setup.Name, err)
	}
	// The answer, which is in the configuration, is the newest there is.
	setup.Spec.Launch = &configuration.Spec.Launch
	setup.ResourceVersion = ptr.Deref(configuration.ResourceVersion, "")
	setup.Generation = ptr.Deref(configuration.Generation, 0)
	return nil
}

// followDeadline gives the Job the deadline of the spec, the only field of it that may change.
func (r *FluxSetupReconciler) followDeadline(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	if ptr.Equal(job.Spec.ActiveDeadlineSeconds, setup.Spec.ActiveDeadlineSeconds) {
		return nil
	}
	// The uid keeps it from falling on another Job that has taken the name since.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": job.UID},
		"spec":     map[string]any{"activeDeadlineSeconds": setup.Spec.ActiveDeadlineSeconds},
	})
	if err != nil {
		return fmt.Errorf("making the deadline of Job %s: %w", job.Name, err)
	}
	target := job.DeepCopy()
	if err := r.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(setupFieldOwner)); err != nil {
		return classify("changing the deadline of Job "+job.Name, err)
	}
	return nil
}
