package cache

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/03-flux/exercises/internal/tasks"
)

var errOlder = errors.New("what has the name is that of an older task")

// Reconcile gives each attempt of a task one Job.
func Reconcile(ctx context.Context, c tasks.Clients, name string) error {
	cached, err := c.CachedConfigMaps.Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	id := name + "-" + cached.Data["attempt"]
	record, recordErr := c.CachedConfigMaps.Get(id)
	_, jobErr := c.CachedJobs.Get(id)
	if recordErr == nil && metav1.IsControlledBy(record, cached) && cached.Data["state"] == stateOf(jobErr == nil) {
		return nil
	}
	task, err := c.ConfigMaps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	id = name + "-" + task.Data["attempt"]
	record, err = c.ConfigMaps.Get(ctx, id, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		record, err = launch(ctx, c, task, id)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(record, task) {
		return errOlder
	}
	_, err = c.Jobs.Get(ctx, id, metav1.GetOptions{})
	if ignoreNotFound(err) != nil || task.Data["state"] == stateOf(err == nil) {
		return ignoreNotFound(err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"data":{"state":%q}}`, task.ResourceVersion, stateOf(err == nil))
	_, err = c.ConfigMaps.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func stateOf(exists bool) string {
	if exists {
		return "Running"
	}
	return "JobLost"
}

// launch creates the Job, and then the record. A controller before a crash, or another replica, may have created the Job.
func launch(ctx context.Context, c tasks.Clients, task *corev1.ConfigMap, id string) (*corev1.ConfigMap, error) {
	job := tasks.NewJob(task)
	job.Name = id
	job, err := c.Jobs.Create(ctx, job, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		job, err = c.Jobs.Get(ctx, id, metav1.GetOptions{})
	}
	if err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(job, task) {
		return nil, errOlder
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: id, OwnerReferences: job.OwnerReferences}}
	return c.ConfigMaps.Create(ctx, record, metav1.CreateOptions{})
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
