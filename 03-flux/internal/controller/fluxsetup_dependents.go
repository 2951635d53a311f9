package controller

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
)

// errNotWatched is joined to a NameConflict that no event resolves, so that it is retried.
var errNotWatched = errors.New("no event says when the name is free: Secrets are not watched")

// maintain keeps the dependents of a started attempt as desired.
func (r *FluxSetupReconciler) maintain(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation) error {
	job := observed.job
	if jobResult(job) != nil || !job.DeletionTimestamp.IsZero() {
		return nil
	}
	err := errors.Join(r.ownJob(ctx, setup, job), r.followDeadline(ctx, setup, job), r.ensureConfigMap(ctx, setup, job), r.ensureService(ctx, setup))
	if !observed.now.Before(startupEnd(setup, observed.since)) && trueCondition(setup.Status.Conditions, v1alpha1.ConditionQuorumReached) == nil {
		err = errors.Join(err, r.requireSecret(ctx, job))
	}
	return err
}

// requireSecret reports an error if brokers cannot start because the Secret no longer exists. Secrets are not watched, and
// the kubelet reports this in Events only. The Secret is not created again, because a broker may have started with the
// first certificate.
func (r *FluxSetupReconciler) requireSecret(ctx context.Context, job *batchv1.Job) error {
	found, err := findDependent(ctx, r.Client, r.apiReader, job, &corev1.Secret{}, client.ObjectKeyFromObject(job))
	if err != nil || found {
		return err
	}
	return &rejectedError{reason: v1alpha1.ReasonConfigLost, message: "Secret " + job.Name + " was deleted"}
}

// ensureService applies the Service. It outlives attempts, and selects the pods of the current one.
func (r *FluxSetupReconciler) ensureService(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	_, err := applyDependent(ctx, r.Client, setupFieldOwner, setup,
		&corev1.Service{}, desiredService(setup), corev1ac.ExtractService, rekeyServicePort)
	return err
}

// ensureConfigMap creates the ConfigMap of an attempt if it does not exist. A lost ConfigMap is created again only with
// the same files, because brokers with different configurations cannot connect to each other.
func (r *FluxSetupReconciler) ensureConfigMap(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	desired := desiredConfigMap(setup, job)
	found, err := findDependent(ctx, r.Client, r.Client, job, &corev1.ConfigMap{}, client.ObjectKeyFromObject(desired))
	if err != nil || found {
		return err
	}
	if job.Annotations[annotationConfigHash] != clusterOf(setup).Hash() {
		return &rejectedError{
			reason:  v1alpha1.ReasonConfigLost,
			message: "ConfigMap " + desired.Name + " was deleted, and this version of the operator would write other files",
		}
	}
	return createDependent(ctx, r.Client, setupFieldOwner, desired)
}

// confirmConfigMap rejects a ConfigMap whose files are not those that the Job was created for: any client can create
// one of this name and make the Job its owner. It is called before the Job is started, and bypasses the cache.
func (r *FluxSetupReconciler) confirmConfigMap(ctx context.Context, job *batchv1.Job) error {
	var files corev1.ConfigMap
	found, err := findDependent(ctx, r.Client, r.apiReader, job, &files, client.ObjectKeyFromObject(job))
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("reading ConfigMap %s: %w", job.Name, errStale)
	case broker.HashOf(files.Data) != job.Annotations[annotationConfigHash] || len(files.BinaryData) > 0 || !ptr.Deref(files.Immutable, false):
		return unexpectedContent("ConfigMap " + job.Name)
	}
	return nil
}

// ensureSecret creates the Secret with the certificate if it does not exist. It is called only before the Job is
// started, because brokers with different certificates cannot connect to each other. The content appears in no log,
// Event or message. The hash of each certificate is recorded in the Job before the Secret is created: otherwise any
// client could create a Secret of this name with its own certificate, make the Job its owner, and know the key that the
// brokers trust.
func (r *FluxSetupReconciler) ensureSecret(ctx context.Context, setup *v1alpha1.FluxSetup, job *batchv1.Job) error {
	var secret corev1.Secret
	found, err := findDependent(ctx, r.Client, r.apiReader, job, &secret, client.ObjectKeyFromObject(job))
	if found && !hasHash(job, secret.Data[broker.CertificateFile]) {
		err = unexpectedContent("Secret " + job.Name)
	}
	if hasReason(err, v1alpha1.ReasonNameConflict) {
		return errors.Join(err, errNotWatched)
	}
	if err != nil || found {
		return err
	}
	certificate, err := r.certificateOf(setup)
	if err != nil {
		return err
	}
	if err := r.recordHash(ctx, job, certificate); err != nil {
		return err
	}
	// To read its own writes, the client would have to watch Secrets.
	desired := desiredSecret(setup, job, certificate)
	err = createDependent(ctx, r.Client, setupFieldOwner, desired, client.DisableReadYourWritesConsistency)
	if err == nil && !hasHash(job, desired.Data[broker.CertificateFile]) {
		return errors.Join(unexpectedContent("Secret "+job.Name), errNotWatched)
	}
	return err
}

// certificateOf derives the certificate of the current attempt. It is the same until the operator restarts, so that
// retries of a failed creation of the Secret do not add a hash each time.
func (r *FluxSetupReconciler) certificateOf(setup *v1alpha1.FluxSetup) ([]byte, error) {
	mac := hmac.New(sha256.New, r.certificateKey)
	mac.Write(fmt.Appendf(nil, "%s/%d", setup.UID, setup.Spec.Attempt))
	certificate, err := broker.NewCertificate(bytes.NewReader(mac.Sum(nil)))
	if err != nil {
		return nil, fmt.Errorf("making the certificate of FluxSetup %s: %w", setup.Name, err)
	}
	return certificate, nil
}

// recordHash adds the hash of a certificate to the Job. The existing hashes stay: the Secret of a replica that has
// crashed, or is no longer the leader, may exist already, or may arrive late.
func (r *FluxSetupReconciler) recordHash(ctx context.Context, job *batchv1.Job, certificate []byte) error {
	if hasHash(job, certificate) {
		return nil
	}
	hashes := strings.TrimSpace(job.Annotations[annotationCertificates] + " " + hashOf(certificate))
	return r.patchJob(ctx, job, "recording a certificate in Job "+job.Name, map[string]any{"metadata": map[string]any{
		"uid": job.UID, "resourceVersion": job.ResourceVersion, "annotations": map[string]string{annotationCertificates: hashes},
	}})
}

// hasHash reports whether the hash of a certificate is recorded in the Job.
func hasHash(job *batchv1.Job, certificate []byte) bool {
	return slices.Contains(strings.Fields(job.Annotations[annotationCertificates]), hashOf(certificate))
}

func hashOf(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}
