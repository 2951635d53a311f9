package sixcases

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/04-goop/exercises/internal/cluster"
)

// cases are the six.
var cases = []struct {
	name, behaviour, verdict string
	// reason says why another verdict is wrong.
	reason string
	effect func(s *scene)
}{
	{"backup", "the backup runs each night, and never twice at once", objects,
		"Kubernetes has a kind that runs a command at given times, and decides nothing for which it has to know the command", backup},
	{"agent", "the agent runs on each node", objects,
		"Kubernetes has a kind that runs a Pod on each node, and notices nodes that join", agent},
	{"migration", "the migration is tried twice at most", objects,
		"Kubernetes has a kind that runs a command until it succeeds or has failed too often, and reports that", migration},
	{"limit", "the namespace cannot have more than three Pods", objects,
		"Kubernetes has a kind by which the API server itself rejects what is too much", limit},
	{"failover", "the failover needs an operator", operator,
		"which replica has the newest data, no object of Kubernetes knows: something has to ask the database, and to decide", nil},
	{"report", "the report of each node needs an operator", operator,
		"a DaemonSet starts a command again when it has ended, and a Job does not notice a node that joins", nil},
}

// backup looks at the times of a CronJob, and runs its template.
func backup(s *scene) {
	list, err := s.client.BatchV1().CronJobs(s.namespace).List(s.b.Context(), metav1.ListOptions{})
	s.must("listing CronJobs", err)
	if len(list.Items) != 1 {
		s.b.Fatalf("backup.yaml has %d CronJobs", len(list.Items))
	}
	spec := list.Items[0].Spec
	schedule, err := cron.ParseStandard(spec.Schedule)
	s.must("the schedule", err)
	now := time.Date(2024, time.February, 26, 12, 0, 0, 0, time.UTC)
	for day := 27; day < 27+14; day++ {
		night := time.Date(2024, time.February, day, 2, 0, 0, 0, time.UTC)
		if now = schedule.Next(now); !now.Equal(night) {
			s.b.Fatalf("a backup is due on %s, and should be on %s", now.Format("Monday at 15:04"), night.Format("Monday at 15:04"))
		}
	}
	if spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		s.b.Fatalf("the backup of the night before goes on, and what the CronJob does at two o'clock is: %s", spec.ConcurrencyPolicy)
	}
	if ptr.Deref(spec.Suspend, false) {
		s.b.Fatalf("the CronJob is suspended")
	}
	// It may be two o'clock.
	s.must("deleting the CronJob", s.client.BatchV1().CronJobs(s.namespace).Delete(s.b.Context(), list.Items[0].Name, metav1.DeleteOptions{}))
	background := metav1.DeletePropagationBackground
	s.must("deleting its Jobs", s.client.BatchV1().Jobs(s.namespace).DeleteCollection(s.b.Context(),
		metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{}))
	s.b.Event("a Job is created from the template of the CronJob")
	job, err := s.client.BatchV1().Jobs(s.namespace).Create(s.b.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "night", Labels: spec.JobTemplate.Labels, Annotations: spec.JobTemplate.Annotations},
		Spec:       spec.JobTemplate.Spec,
	}, metav1.CreateOptions{})
	s.must("creating a Job from the template of the CronJob", err)
	s.end(s.one("example.com/backup"), corev1.PodSucceeded)
	s.ended(job.Name, batchv1.JobComplete, "the backup has succeeded")
}

// agent has nodes join.
func agent(s *scene) {
	s.everywhere("on a node, no agent runs", s.plain, s.other)
	for effect, node := range s.tainted {
		text := fmt.Sprintf("on a node with a taint whose effect is %s, no agent runs", effects[effect])
		s.everywhere(text, node)
	}
	s.allHaveNodes()
	s.b.Event("two nodes join")
	joined := []string{cluster.Node(s.b, s.client, s.namespace, "c"), cluster.Node(s.b, s.client, s.namespace, "d")}
	s.everywhere("a node has joined, and no agent runs on it", joined...)
	s.b.Event("the Pods of the agent are deleted")
	s.must("deleting Pods", s.client.CoreV1().Pods(s.namespace).DeleteCollection(s.b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	s.everywhere("the Pod of an agent was deleted, and no other one runs", append(append(joined, s.tainted...), s.plain, s.other)...)
}

// migration has the command fail once and succeed, and then fail twice.
func migration(s *scene) {
	jobs, err := s.client.BatchV1().Jobs(s.namespace).List(s.b.Context(), metav1.ListOptions{})
	s.must("listing Jobs", err)
	if len(jobs.Items) != 1 {
		s.b.Fatalf("migration.yaml has %d Jobs", len(jobs.Items))
	}
	first := jobs.Items[0]
	s.end(s.one("example.com/migrate"), corev1.PodFailed)
	s.end(s.one("example.com/migrate"), corev1.PodSucceeded)
	s.ended(first.Name, batchv1.JobComplete, "the second try has succeeded")

	s.b.Event("the Job is created a second time, under another name")
	second := again(first)
	_, err = s.client.BatchV1().Jobs(s.namespace).Create(s.b.Context(), second, metav1.CreateOptions{})
	s.must("creating the Job a second time", err)
	s.end(s.one("example.com/migrate"), corev1.PodFailed)
	s.end(s.one("example.com/migrate"), corev1.PodFailed)
	s.ended(second.Name, batchv1.JobFailed, "the migration has failed twice")
}

// limit creates Pods.
func limit(s *scene) {
	s.quotasKnown()
	for count := 1; ; count++ {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/team"}}},
		}
		if count%2 == 0 {
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		}
		cluster.Adopt(s.namespace, &pod.ObjectMeta, &pod.Spec)
		_, err := s.client.CoreV1().Pods(s.namespace).Create(s.b.Context(), pod, metav1.CreateOptions{})
		switch {
		case err != nil && !apierrors.IsForbidden(err):
			s.b.Fatalf("creating a Pod: %v", err)
		case err != nil && count <= 3:
			s.b.Event("  %v", err)
			s.b.Fatalf("the API server rejects Pod number %d", count)
		case err != nil:
			return
		case count > 3:
			s.b.Fatalf("the API server accepts a fourth Pod")
		}
	}
}
