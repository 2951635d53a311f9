package nogoop

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/exercises/internal/cluster"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const (
	succeeded = corev1.PodSucceeded
	failed    = corev1.PodFailed
)

// scene is the Job, with two nodes for its Pods alone.
type scene struct {
	b         *check.B
	client    kubernetes.Interface
	namespace string
}

func newScene(b *check.B, dir string) *scene {
	s := &scene{b: b, client: kube.Client(b), namespace: kube.Namespace(b)}
	cluster.Node(b, s.client, s.namespace, "a")
	// The scheduler would rather not use it, which counts for more than an uneven spread.
	cluster.Node(b, s.client, s.namespace, "b", corev1.Taint{Key: "busy", Effect: corev1.TaintEffectPreferNoSchedule})
	content, err := os.ReadFile(filepath.Join(dir, "job.yaml"))
	if err != nil {
		b.Fatalf("there is no job.yaml in your folder: %v", err)
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(content, &job); err != nil {
		b.Fatalf("job.yaml: %v", err)
	}
	if job.APIVersion != "batch/v1" || job.Kind != "Job" {
		b.Fatalf("job.yaml is no Job of batch/v1")
	}
	job.Namespace = s.namespace
	cluster.Adopt(s.namespace, &job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec)
	b.Event("the Job is created")
	_, err = s.client.BatchV1().Jobs(s.namespace).Create(b.Context(), &job, metav1.CreateOptions{})
	s.must("creating the Job", err)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// pods returns the unfinished Pods that have a node.
func (s *scene) pods() []corev1.Pod { return cluster.Active(s.b, s.client, s.namespace) }

// running waits until six workers have a node, and returns their Pods by number.
func (s *scene) running() map[int]corev1.Pod {
	var pods []corev1.Pod
	s.b.Eventually(cluster.Patience, func() string {
		if pods = s.pods(); len(pods) < workers {
			spec := s.job().Spec
			text := fmt.Sprintf("of the %d workers of the Job %d run at the same time", ptr.Deref(spec.Completions, 1), len(pods))
			if most := ptr.Deref(spec.Parallelism, 1); most < workers && len(pods) >= int(most) {
				s.b.Fatalf("%s", text)
			}
			return text
		}
		return ""
	})
	return byNumber(pods)
}

// byNumber has the Pods of an Indexed Job by their number; others get the numbers that are left.
func byNumber(pods []corev1.Pod) map[int]corev1.Pod {
	numbered := map[int]corev1.Pod{}
	for i, pod := range pods {
		number := -1 - i
		if index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil {
			number = index
		}
		numbered[number] = pod
	}
	return numbered
}

func (s *scene) numbered(pods map[int]corev1.Pod) {
	for worker := range workers {
		if _, found := pods[worker]; !found {
			s.b.Fatalf("no worker has the number %d", worker)
		}
	}
	if len(pods) > workers {
		s.b.Fatalf("%d workers run, and not %d", len(pods), workers)
	}
}

func (s *scene) even(pods map[int]corev1.Pod) {
	count := map[string]int{}
	for _, pod := range pods {
		count[pod.Spec.NodeName]++
	}
	a, b := count[s.namespace+"-a"], count[s.namespace+"-b"]
	s.b.Event("%d workers run on the node that is nearly empty, and %d on the other", a, b)
	if a != workers/2 || b != workers/2 {
		s.b.Fatalf("the two nodes do not have three workers each")
	}
}

// end ends a worker.
func (s *scene) end(pod corev1.Pod, phase corev1.PodPhase) {
	s.b.Event("worker %s ends: %s", pod.Annotations[batchv1.JobCompletionIndexAnnotation], phase)
	cluster.End(s.b, s.client, pod, phase)
}

// job returns the Job.
func (s *scene) job() *batchv1.Job {
	list, err := s.client.BatchV1().Jobs(s.namespace).List(s.b.Context(), metav1.ListOptions{})
	s.must("listing Jobs", err)
	if len(list.Items) != 1 {
		s.b.Fatalf("there are %d Jobs", len(list.Items))
	}
	return &list.Items[0]
}
