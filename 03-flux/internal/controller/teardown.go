package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// tearDown takes away all that was made for a suspended FluxSetup: the Job, and when its pods are gone the rest.
// Like launch it trusts the cache in nothing but pods: one that is out of date may not know that the FluxSetup
// was resumed.
func (r *FluxSetupReconciler) tearDown(ctx context.Context, setup *v1alpha1.FluxSetup, seen *setupFacts) error {
	if err := r.refresh(ctx, setup); err != nil {
		return err
	}
	if !setup.Spec.Suspend {
		return errStale
	}
	job, err := readJob(ctx, r.APIReader, setup)
	if err != nil {
		return err
	}
	switch kinshipOf(setup, job) {
	case jobPresent:
		if !over(setup) && verdictOf(job) != nil && job.DeletionTimestamp.IsZero() {
			// It ended before it could be suspended. That is written before anything is removed.
			seen.job = job
			return nil
		}
		if err := r.rememberJob(ctx, setup, job); err != nil {
			return err
		}
		// In this state only: if it ends meanwhile, the next pass will see it.
		return r.deleteJob(ctx, job, &job.ResourceVersion)
	case jobOlder:
		return r.deleteJob(ctx, job, nil)
	}

	left, err := r.podsLeft(ctx, setup)
	if err != nil || left != "" {
		return err
	}
	for _, child := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Service{}} {
		if err := r.deleteChild(ctx, setup, child); err != nil {
			return err
		}
	}
	r.words.forget(client.ObjectKeyFromObject(setup))
	seen.cleared = true
	return nil
}

// readJob reads the Job of the FluxSetup's name, whoever's it is; nil if there is none.
func readJob(ctx context.Context, reader client.Reader, setup *v1alpha1.FluxSetup) (*batchv1.Job, error) {
	var job batchv1.Job
	if err := reader.Get(ctx, client.ObjectKeyFromObject(setup), &job); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Job %s: %w", setup.Name, err)
	}
	return &job, nil
}

// deleteJob deletes exactly this Job: its pods first, so that where there is no Job there are no pods. With a
// version it is deleted only as it was seen.
func (r *FluxSetupReconciler) deleteJob(ctx context.Context, job *batchv1.Job, version *string) error {
	if !job.DeletionTimestamp.IsZero() {
		return nil
	}
	err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: &job.UID, ResourceVersion: version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s: %w", job.Name, err)
	}
	return nil
}

// deleteChild deletes the child of one kind, if it is the FluxSetup's. Secrets are not in the cache.
func (r *FluxSetupReconciler) deleteChild(ctx context.Context, setup *v1alpha1.FluxSetup, child client.Object) error {
	reader, options := client.Reader(r.Client), []client.DeleteOption{}
	if _, ok := child.(*corev1.Secret); ok {
		reader, options = r.APIReader, append(options, client.DisableReadYourWritesConsistency)
	}
	err := reader.Get(ctx, client.ObjectKeyFromObject(setup), child)
	if err == nil && metav1.IsControlledBy(child, setup) && child.GetDeletionTimestamp().IsZero() {
		err = r.Delete(ctx, child, append(options, client.Preconditions{UID: new(child.GetUID())})...)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", child, setup.Name, err)
	}
	return nil
}

// podsLeft returns the name of a pod of any Job of the FluxSetup's name, "" if there is none. It is called when
// there is no such Job, or when it is an earlier one. The cache is asked first: while it knows of one, so be it.
func (r *FluxSetupReconciler) podsLeft(ctx context.Context, setup *v1alpha1.FluxSetup) (string, error) {
	for _, reader := range []client.Reader{r.Client, r.APIReader} {
		var pods corev1.PodList
		err := reader.List(ctx, &pods, client.InNamespace(setup.Namespace), client.MatchingLabels(podSelector(setup)))
		if err != nil {
			return "", fmt.Errorf("listing Pods of FluxSetup %s: %w", setup.Name, err)
		}
		for i := range pods.Items {
			if owner := metav1.GetControllerOf(&pods.Items[i]); owner != nil && owner.Kind == "Job" && owner.Name == setup.Name {
				return pods.Items[i].Name, nil
			}
		}
	}
	return "", nil
}
