// Package tasks is what exercise 19b reads and writes with.
package tasks

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Clients are those of one namespace.
type Clients struct {
	// CachedConfigMaps and CachedJobs read from a cache. It may be behind, that of the ConfigMaps more than that of the Jobs, or less.
	CachedConfigMaps corelisters.ConfigMapNamespaceLister
	CachedJobs       batchlisters.JobNamespaceLister
	// ConfigMaps and Jobs send requests to the API server.
	ConfigMaps typedcorev1.ConfigMapInterface
	Jobs       typedbatchv1.JobInterface
}

// NewJob returns a Job for a task, which controls it. It has no name yet.
func NewJob(task *corev1.ConfigMap) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(task, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "task", Image: "example.com/task"}},
		}}},
	}
}
