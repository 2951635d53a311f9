package controller

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// setupJobs are the Jobs that matter to a FluxSetup.
type setupJobs struct {
	// current is the Job of the present attempt; nil if there is none.
	current *batchv1.Job
	// inTheWay: a Job that the FluxSetup does not own has the name of that of the present attempt.
	inTheWay bool
	// superseded are to be deleted.
	superseded []batchv1.Job
	// predecessor is the name of a Job that the garbage collector is about to delete; "" if there is none.
	predecessor string
}

// readJobs finds the Jobs of a FluxSetup by their labels, whatever their names: those of an older operator have the name
// of the FluxSetup. The Job that has the name of the present attempt's is read in any case: it may not be ours, or have
// lost its labels.
func (r *FluxSetupReconciler) readJobs(ctx context.Context, reader client.Reader, setup *v1alpha1.FluxSetup) (setupJobs, error) {
	var jobs setupJobs
	var found batchv1.JobList
	if err := reader.List(ctx, &found, client.InNamespace(setup.Namespace), client.MatchingLabels(podSelector(setup))); err != nil {
		return jobs, fmt.Errorf("listing Jobs of FluxSetup %s: %w", setup.Name, err)
	}
	var named batchv1.Job
	err := reader.Get(ctx, client.ObjectKey{Namespace: setup.Namespace, Name: jobName(setup)}, &named)
	if client.IgnoreNotFound(err) != nil {
		return jobs, fmt.Errorf("reading Job %s: %w", jobName(setup), err)
	}
	if err == nil {
		jobs.add(setup, &named)
	}
	for i := range found.Items {
		if found.Items[i].Name != jobName(setup) {
			jobs.add(setup, &found.Items[i])
		}
	}
	return jobs, nil
}

func (j *setupJobs) add(setup *v1alpha1.FluxSetup, job *batchv1.Job) {
	switch role := roleOf(setup, job); role {
	case jobCurrent:
		j.current = job
	case jobSuperseded:
		j.superseded = append(j.superseded, *job)
	case jobOfPredecessor:
		j.predecessor = job.Name
	}
	j.inTheWay = j.inTheWay || (job.Name == jobName(setup) && !metav1.IsControlledBy(job, setup))
}

// refresh reads the FluxSetup past the cache.
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

// deleteLeft deletes what is left of other attempts, and says what of it still exists: "" if nothing does.
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

// deleteJob deletes exactly this Job, and only as it was read: it may have ended since, and would take the evidence with
// it. What it owns goes first, so that where there is no Job there are no pods, and neither ConfigMap nor Secret.
func (r *FluxSetupReconciler) deleteJob(ctx context.Context, job *batchv1.Job) error {
	if !job.DeletionTimestamp.IsZero() {
		return nil
	}
	err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return classify("deleting Job "+job.Name, err)
	}
	return nil
}

// podLeft returns a pod of the FluxSetup's name, "" if there is none. It is called when no attempt should have one. Who
// owns it does not matter: the garbage collector removes the owner of pods whose Job is deleted without them. The cache
// is asked first: a pod that it has is enough.
func (r *FluxSetupReconciler) podLeft(ctx context.Context, setup *v1alpha1.FluxSetup) (string, error) {
	for _, reader := range []client.Reader{r.Client, r.apiReader} {
		var pods corev1.PodList
		err := reader.List(ctx, &pods, client.InNamespace(setup.Namespace), client.MatchingLabels(podSelector(setup)), client.Limit(1))
		if err != nil {
			return "", fmt.Errorf("listing Pods of FluxSetup %s: %w", setup.Name, err)
		}
		if len(pods.Items) > 0 {
			return "Pod " + pods.Items[0].Name, nil
		}
	}
	return "", nil
}

// podsOf lists the pods of one Job from the cache. They are not copied: they must not be changed.
func (r *FluxSetupReconciler) podsOf(ctx context.Context, setup *v1alpha1.FluxSetup, job types.UID) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(setup.Namespace), client.MatchingLabels(podSelector(setup)), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing Pods of FluxSetup %s: %w", setup.Name, err)
	}
	ours := make([]corev1.Pod, 0, len(pods.Items))
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.UID == job && rankOf(&pod) >= 0 {
			ours = append(ours, pod)
		}
	}
	return ours, nil
}
