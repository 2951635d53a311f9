package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
)

// errNotWatched goes with a NameConflict that no event ends: it is retried.
var errNotWatched = errors.New("no event says when the name is free: Secrets are not watched")

// maintain keeps what a started attempt needs as it should be.
func (r *FluxSetupReconciler) maintain(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation) error {
	job := observed.job
	if verdictOf(job) != nil || !job.DeletionTimestamp.IsZero() {
		return nil
	}
	err := errors.Join(r.followDeadline(ctx, setup, job), r.ensureConfigMap(ctx, setup, job), r.ensureService(ctx, setup))
	if startupExpired(setup, observed.now) && trueCondition(setup.Status.Conditions, v1alpha1.ConditionQuorumReached) == nil {
		err = errors.Join(err, r.findSecret(ctx, job))
	}
	return err
}

// findSecret says whether the reason why brokers do not start is that the Secret is gone: it is not watched, and a kubelet
// says so in Events only. It is not created again: a broker may have started with the first certificate.
func (r *FluxSetupReconciler) findSecret(ctx context.Context, job *batchv1.Job) error {
	if _, ours := job.Annotations[annotationConfigHash]; !ours {
		return nil
	}
	found, err := findDependent(ctx, r.Client, r.apiReader, job, &corev1.Secret{}, client.ObjectKeyFromObject(job))
	if err != nil || found {
		return err
	}
	return &rejectedError{reason: v1alpha1.ReasonConfigLost, message: "Secret " + job.Name + " is gone"}
}

// ensureService applies the Service, which outlives attempts: it finds the pods of the present one.
func (r *FluxSetupReconciler) ensureService(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	_, err := applyDependent(ctx, r.Client, setupFieldOwner, setup, &corev1.Service{}, desiredService(setup), corev1ac.ExtractService)
	return err
}

// ensureConfigMap creates the ConfigMap of an attempt, if it does not exist. One that is lost is created again only with
// the same files: brokers that read different ones do not find each other. What an older operator has created, before
// each attempt had a ConfigMap of its own, is left alone.
func (r *FluxSetupReconciler) ensureConfigMap(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	hash, ours := job.Annotations[annotationConfigHash]
	if !ours {
		return nil
	}
	desired := desiredConfigMap(setup, job)
	found, err := findDependent(ctx, r.Client, r.Client, job, &corev1.ConfigMap{}, client.ObjectKeyFromObject(desired))
	if err != nil || found {
		return err
	}
	if hash != clusterOf(setup).Hash() {
		return &rejectedError{
			reason:  v1alpha1.ReasonConfigLost,
			message: "ConfigMap " + desired.Name + " is gone, and this version of the operator would write other files",
		}
	}
	_, err = createDependent(ctx, r.Client, setupFieldOwner, desired)
	return err
}

// ensureSecret creates the Secret with the certificate, if it does not exist. It is called only before the Job is
// started: brokers with different certificates do not find each other. Its content is in no log, Event or message.
func (r *FluxSetupReconciler) ensureSecret(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	found, err := findDependent(ctx, r.Client, r.apiReader, job, &corev1.Secret{}, client.ObjectKeyFromObject(job))
	if conflict, _ := without(err, v1alpha1.ReasonNameConflict); conflict {
		return errors.Join(err, errNotWatched)
	}
	if err != nil || found {
		return err
	}
	certificate, err := broker.NewCertificate(r.random)
	if err != nil {
		return fmt.Errorf("making the certificate of FluxSetup %s: %w", setup.Name, err)
	}
	// To read one's own writes, the client would have to watch Secrets.
	_, err = createDependent(ctx, r.Client, setupFieldOwner, desiredSecret(setup, job, certificate), client.DisableReadYourWritesConsistency)
	return err
}

// followDeadline gives the Job the deadline of the spec, the only field of a started Job that may change.
func (r *FluxSetupReconciler) followDeadline(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	if ptr.Equal(job.Spec.ActiveDeadlineSeconds, setup.Spec.ActiveDeadlineSeconds) {
		return nil
	}
	// The uid keeps it from falling on another Job that has got the name since.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": job.UID},
		"spec":     map[string]any{"activeDeadlineSeconds": setup.Spec.ActiveDeadlineSeconds},
	})
	if err != nil {
		return fmt.Errorf("encoding the deadline of Job %s: %w", job.Name, err)
	}
	err = r.Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(setupFieldOwner))
	if err != nil {
		return classify("changing the deadline of Job "+job.Name, err)
	}
	return nil
}
