package nogoop

import (
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/04-goop/exercises/internal/cluster"
)

// again waits until a worker that has failed runs a second time.
func (s *scene) again(worker int) corev1.Pod {
	var pod corev1.Pod
	s.b.Eventually(cluster.Patience, func() string {
		job := s.job()
		if ended(job) {
			s.b.Fatalf("worker %d has failed once, and the Job has ended", worker)
		}
		var found bool
		if pod, found = byNumber(s.pods())[worker]; !found {
			if index := job.Status.FailedIndexes; index != nil && *index == strconv.Itoa(worker) {
				s.b.Fatalf("worker %d has failed once, and is not started again", worker)
			}
			return fmt.Sprintf("worker %d has failed once, and is not started again", worker)
		}
		return ""
	})
	return pod
}

// othersRun asserts that all but those that have failed are still there, and returns their Pods.
func (s *scene) othersRun(failed ...int) map[int]corev1.Pod {
	pods := byNumber(s.pods())
	for other := range workers {
		if _, found := pods[other]; !found && !slices.Contains(failed, other) {
			s.b.Fatalf("worker %d has failed, and worker %d does not run any more", failed[0], other)
		}
	}
	return pods
}

// failedIndexes waits until the status says which workers have failed.
func (s *scene) failedIndexes(want string, failed ...int) {
	s.b.Eventually(cluster.Patience, func() string {
		job, pods := s.job(), byNumber(s.pods())
		if ended(job) {
			s.b.Fatalf("worker %d has failed twice, and the Job has ended without the others", failed[0])
		}
		for _, worker := range failed {
			if _, again := pods[worker]; again {
				s.b.Fatalf("worker %d has failed twice, and is started again", worker)
			}
		}
		if got := job.Status.FailedIndexes; got != nil && *got == want {
			return ""
		}
		return "the status does not say that the workers " + want + " have failed"
	})
}

// completed waits until the Job has ended, and asserts which workers have succeeded.
func (s *scene) completed(indexes string) {
	s.b.Eventually(cluster.Patience, func() string {
		job := s.job()
		if !condition(job, batchv1.JobFailed) && !condition(job, batchv1.JobComplete) {
			return "all workers have ended, and the Job has not"
		}
		if job.Status.CompletedIndexes != indexes {
			s.b.Fatalf("the workers %s have succeeded, and the status has %q", indexes, job.Status.CompletedIndexes)
		}
		return ""
	})
}

func (s *scene) complete() {
	s.b.Eventually(cluster.Patience, func() string {
		if !condition(s.job(), batchv1.JobComplete) {
			return "six workers have succeeded, and the Job is not Complete"
		}
		return ""
	})
}

// stays fails if the Job is deleted some time after its end.
func (s *scene) stays() {
	if seconds := s.job().Spec.TTLSecondsAfterFinished; seconds != nil {
		s.b.Fatalf("the Job is deleted %d s after its end, and with it the status", *seconds)
	}
}

func ended(job *batchv1.Job) bool {
	return condition(job, batchv1.JobComplete) || condition(job, batchv1.JobFailed) || condition(job, batchv1.JobFailureTarget)
}

func condition(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	for _, one := range job.Status.Conditions {
		if one.Type == kind && one.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
