package cache

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/exercises/internal/tasks"
)

// Reconcile gives each attempt of a task one Job.
func Reconcile(ctx context.Context, c tasks.Clients, name string) error {
	cached, err := c.CachedConfigMaps.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || nothingToDo(c, cached) {
		return err
	}
	// From here on, nothing comes from the cache.
	task, err := c.ConfigMaps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	attempt := task.Data["attempt"]
	if task.Data["launched"] == attempt {
		job, err := c.Jobs.Get(ctx, nameOf(task), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && string(job.UID) != task.Data["uid"]) {
			task.Data["state"] = "JobLost"
			_, err = c.ConfigMaps.Update(ctx, task, metav1.UpdateOptions{})
		}
		return err
	}
	job, err := launch(ctx, c, task)
	if err != nil {
		return err
	}
	task.Data["launched"], task.Data["uid"], task.Data["state"] = attempt, string(job.UID), "Running"
	_, err = c.ConfigMaps.Update(ctx, task, metav1.UpdateOptions{})
	return err
}

func nameOf(task *corev1.ConfigMap) string { return task.Name + "-" + task.Data["attempt"] }

// nothingToDo asks only the cache. If it is wrong because that is behind, an event will come.
func nothingToDo(c tasks.Clients, task *corev1.ConfigMap) bool {
	if task.Data["launched"] != task.Data["attempt"] {
		return false
	}
	job, err := c.CachedJobs.Get(nameOf(task))
	exists := err == nil && string(job.UID) == task.Data["uid"]
	return exists || task.Data["state"] == "JobLost"
}

// launch creates the Job, or returns the one that a controller before a crash, or another replica, has created.
func launch(ctx context.Context, c tasks.Clients, task *corev1.ConfigMap) (*batchv1.Job, error) {
	job := tasks.NewJob(task)
	job.Name = nameOf(task)
	job, err := c.Jobs.Create(ctx, job, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return job, err
	}
	job, err = c.Jobs.Get(ctx, nameOf(task), metav1.GetOptions{})
	if err == nil && !metav1.IsControlledBy(job, task) {
		err = fmt.Errorf("the Job %s is not that of the task", nameOf(task))
	}
	return job, err
}
