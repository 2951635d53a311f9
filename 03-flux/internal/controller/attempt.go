package controller

import (
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// jobName is the name of the Job of the present attempt, and of its ConfigMap and its Secret.
func jobName(setup *v1alpha1.FluxSetup) string {
	return fmt.Sprintf("%s-%d", setup.Name, setup.Spec.Attempt)
}

// launched tells whether the launch of the present attempt is recorded, be it that it could not succeed yet.
func launched(setup *v1alpha1.FluxSetup) bool {
	return setup.Spec.Launch != nil && setup.Spec.Launch.Attempt == setup.Spec.Attempt
}

// recorded tells whether the Job of the present attempt is recorded.
func recorded(setup *v1alpha1.FluxSetup) bool {
	return launched(setup) && setup.Spec.Launch.JobUID != ""
}

// started tells whether a Job may have run. An older operator did not suspend its Jobs, and did not mark them.
func started(job *batchv1.Job) bool {
	return job.Annotations[annotationStarted] == "true" || !ptr.Deref(job.Spec.Suspend, false)
}

// startupEnd is when the time to start the present attempt expires: until then it has to reach its quorum.
func startupEnd(setup *v1alpha1.FluxSetup) time.Time {
	return setup.Spec.Launch.Time.Add(time.Duration(setup.Spec.StartupTimeoutSeconds) * time.Second)
}

func startupExpired(setup *v1alpha1.FluxSetup, now time.Time) bool {
	return launched(setup) && !now.Before(startupEnd(setup))
}

// over tells whether the present attempt has ended: the latch. Nothing of it is created again.
func over(setup *v1alpha1.FluxSetup) bool {
	return current(setup) && (trueCondition(setup.Status.Conditions, v1alpha1.ConditionComplete) != nil ||
		trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed) != nil)
}

// changed tells whether another writer has suspended a started Job, or changed its parallelism: the Job controller then
// deletes pods, and creates them again when that is undone, which would run the command again in the same attempt.
func changed(setup *v1alpha1.FluxSetup, job *batchv1.Job) bool {
	return job.Annotations[annotationStarted] == "true" &&
		(ptr.Deref(job.Spec.Suspend, false) || ptr.Deref(job.Spec.Parallelism, setup.Spec.Size) != setup.Spec.Size)
}

// jobRole says what a Job is to a FluxSetup.
type jobRole int

const (
	// jobNotOwned: the FluxSetup does not own it.
	jobNotOwned jobRole = iota
	// jobOfPredecessor: a FluxSetup of the same name that was deleted owns it, and the garbage collector deletes it.
	jobOfPredecessor
	// jobCurrent: it is that of the present attempt.
	jobCurrent
	// jobSuperseded: it is that of an earlier attempt, or was created late, and never runs for the present one.
	jobSuperseded
	// jobUnknown: the FluxSetup that was read is too old to know it.
	jobUnknown
)

// roleOf decides it. Attempts only rise, and a recorded uid stays: what is superseded by a FluxSetup that is stale is
// superseded by its newest state too.
func roleOf(setup *v1alpha1.FluxSetup, job *batchv1.Job) jobRole {
	switch {
	case !metav1.IsControlledBy(job, setup) && isOurs(job) && metav1.GetControllerOf(job).Name == setup.Name:
		return jobOfPredecessor
	case !metav1.IsControlledBy(job, setup):
		return jobNotOwned
	case recorded(setup) && setup.Spec.Launch.JobUID == string(job.UID):
		return jobCurrent
	}
	attempt, err := strconv.Atoi(job.Labels[labelAttempt])
	switch {
	case err != nil || int32(attempt) > setup.Spec.Attempt:
		return jobUnknown
	case int32(attempt) < setup.Spec.Attempt || recorded(setup):
		return jobSuperseded
	// Deleted before it was recorded, it has not run.
	case !job.DeletionTimestamp.IsZero() && !started(job):
		return jobSuperseded
	}
	return jobCurrent
}

// isOurs tells whether a FluxSetup, any FluxSetup, is the controller of the object.
func isOurs(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "FluxSetup" && owner.APIVersion == v1alpha1.GroupVersion.String()
}
