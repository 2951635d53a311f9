//go:build start

package cache

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/exercises/internal/tasks"
)

// Reconcile gives each attempt of a task one Job.
func Reconcile(ctx context.Context, c tasks.Clients, name string) error {
	task, err := c.CachedConfigMaps.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	task = task.DeepCopy() // the cache's object is not ours to change
	if task.Data["launched"] != task.Data["attempt"] {
		// TODO: the cache may lack the last launch, and the Job may have been deleted.
		job := tasks.NewJob(task)
		job.GenerateName = name + "-"
		if _, err := c.Jobs.Create(ctx, job, metav1.CreateOptions{}); err != nil {
			return err
		}
		task.Data["launched"], task.Data["state"] = task.Data["attempt"], "Running"
		_, err = c.ConfigMaps.Update(ctx, task, metav1.UpdateOptions{})
	}
	return err
}
