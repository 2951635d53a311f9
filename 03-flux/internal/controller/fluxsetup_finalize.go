package controller

import (
	"context"
	"errors"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// finalize deletes the running Jobs of a FluxSetup that is being deleted by another client. The operator sets no
// finalizer on a FluxSetup: the garbage collector deletes the Jobs when the FluxSetup is removed. A finalizer of
// another client may delay that, while the Flux has already ended. A Job is left alone if it is to be orphaned, if it
// has ended by itself, or if only spec.launch says that the FluxSetup owns it.
func (r *FluxSetupReconciler) finalize(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	if controllerutil.ContainsFinalizer(setup, metav1.FinalizerOrphanDependents) {
		return nil
	}
	jobs, err := r.readJobs(ctx, r.Client, setup)
	job := jobs.current
	switch {
	case err != nil:
	case job != nil && jobResult(job) == nil:
		err = r.deleteJob(ctx, job)
	case job == nil && jobRecorded(setup) && jobs.inTheWay:
		err = nameConflict("Job " + jobName(setup))
	}
	// A Job of an earlier attempt may still exist, although it was to be deleted.
	for i := range jobs.superseded {
		if jobResult(&jobs.superseded[i]) == nil {
			err = errors.Join(err, r.deleteJob(ctx, &jobs.superseded[i]))
		}
	}
	if isStale(err) {
		return err
	}
	observed := setupObservation{now: r.clock.Now(), job: job, lost: job == nil && jobRecorded(setup), failure: failureOf(err)}
	reportErr := r.reportDeletion(ctx, setup, observed)
	err = without(err, v1alpha1.ReasonNameConflict)
	return errors.Join(err, reportErr)
}

// reportDeletion reports what prevents the deletion of the Job of a deleted FluxSetup, and when that is resolved.
// Nothing else of the status changes any more.
func (r *FluxSetupReconciler) reportDeletion(ctx context.Context, setup *v1alpha1.FluxSetup, observed setupObservation) error {
	if observed.failure == nil && !needsAttention(conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured)) {
		return nil
	}
	before := setup.DeepCopy()
	configured := configuredCondition(setup, observed)
	configured.ObservedGeneration, configured.LastTransitionTime = setup.Generation, metav1.NewTime(observed.now)
	setCondition(&setup.Status.Conditions, configured)
	if apiequality.Semantic.DeepEqual(setup.Status, before.Status) {
		return nil
	}
	if err := writeStatus(ctx, r.Client, before, setup, setupFieldOwner); err != nil {
		return err
	}
	announce(ctx, nil, setup, setupTransitions(before.Status, setup.Status))
	return nil
}
