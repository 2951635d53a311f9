package sixcases

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"example.com/workbook/04-goop/exercises/internal/cluster"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// effects are those of the taints that nodes of a case have.
var effects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}

// scene is a namespace with the objects of one case, and nodes for its Pods.
type scene struct {
	b            *check.B
	client       kubernetes.Interface
	namespace    string
	plain, other string
	// tainted has a node for each effect.
	tainted []string
}

func newScene(b *check.B, dir, name string) *scene {
	s := &scene{b: b, client: kube.Client(b), namespace: kube.Namespace(b)}
	content, err := os.ReadFile(filepath.Join(dir, name+".yaml"))
	if err != nil {
		b.Fatalf("%s: the verdict is objects, and there is no %s.yaml in your folder", name, name)
	}
	s.plain = cluster.Node(b, s.client, s.namespace, "a")
	s.other = cluster.Node(b, s.client, s.namespace, "b")
	for _, effect := range effects {
		// Its key is one that no answer can name.
		taint := corev1.Taint{Key: s.namespace + ".example.com/dedicated", Effect: effect}
		s.tainted = append(s.tainted, cluster.Node(b, s.client, s.namespace, strings.ToLower(string(effect)), taint))
	}
	b.Eventually(cluster.Patience, func() string {
		if _, err := s.client.CoreV1().ServiceAccounts(s.namespace).Get(b.Context(), "default", metav1.GetOptions{}); err != nil {
			return "the namespace of the check has no ServiceAccount: " + err.Error()
		}
		return ""
	})
	s.apply(name+".yaml", content)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// apply creates the objects of a file.
func (s *scene) apply(file string, content []byte) {
	resources, err := restmapper.GetAPIGroupResources(s.client.Discovery())
	s.must("reading what the API server serves", err)
	mapper := restmapper.NewDiscoveryRESTMapper(resources)
	client, err := dynamic.NewForConfig(kube.Config(s.b))
	s.must("making a client", err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 1<<10)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			s.b.Fatalf("%s: %v", file, err)
		case object.IsList():
			s.must(file, object.EachListItem(func(item runtime.Object) error {
				s.create(file, client, mapper, item.(*unstructured.Unstructured))
				return nil
			}))
		case len(object.Object) > 0:
			s.create(file, client, mapper, object)
		}
	}
}

// create creates an object of a file.
func (s *scene) create(file string, client dynamic.Interface, mapper apimeta.RESTMapper, object *unstructured.Unstructured) {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil || mapping.Scope.Name() != apimeta.RESTScopeNameNamespace {
		s.b.Fatalf("%s: a %s is no kind of Kubernetes that has a namespace", file, kind.Kind)
	}
	object.SetNamespace(s.namespace)
	create := func(options metav1.CreateOptions) {
		_, err := client.Resource(mapping.Resource).Namespace(s.namespace).Create(s.b.Context(), object, options)
		s.must(file, err)
	}
	create(metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
	s.adopt(object)
	s.b.Event("the %s %s is created", object.GetKind(), object.GetName())
	create(metav1.CreateOptions{})
}

// adopt changes the Pods of an object as cluster.Adopt does.
func (s *scene) adopt(object *unstructured.Unstructured) {
	path := map[string][]string{"Pod": {}, "CronJob": {"spec", "jobTemplate", "spec", "template"}}[object.GetKind()]
	if path == nil {
		path = []string{"spec", "template"}
	}
	content := object.Object
	if len(path) > 0 {
		template, found, err := unstructured.NestedMap(object.Object, path...)
		if !found || err != nil {
			return
		}
		content = template
	}
	var pod corev1.PodTemplateSpec
	s.must("reading a Pod", runtime.DefaultUnstructuredConverter.FromUnstructured(content, &pod))
	cluster.Adopt(s.namespace, &pod.ObjectMeta, &pod.Spec)
	changed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	s.must("changing a Pod", err)
	for key, value := range changed {
		s.must("changing a Pod", unstructured.SetNestedField(object.Object, value, append(slices.Clone(path), key)...))
	}
}

// running are the Pods of an image that have a node and have not ended.
func (s *scene) running(image string) []corev1.Pod {
	return slices.DeleteFunc(cluster.Active(s.b, s.client, s.namespace), func(pod corev1.Pod) bool {
		return !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return isOf(c.Image, image) })
	})
}

// isOf says whether it is that image, whatever its tag or digest is.
func isOf(image, name string) bool {
	return image == name || strings.HasPrefix(image, name+":") || strings.HasPrefix(image, name+"@")
}

// allHaveNodes waits until no Pod waits for a node.
func (s *scene) allHaveNodes() {
	s.b.Eventually(cluster.Patience, func() string {
		pods, err := s.client.CoreV1().Pods(s.namespace).List(s.b.Context(), metav1.ListOptions{})
		s.must("listing Pods", err)
		if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" }) {
			return "an agent runs on each node, and another one waits for a node"
		}
		return ""
	})
}

// one waits until one Pod of an image runs.
func (s *scene) one(image string) corev1.Pod {
	var pods []corev1.Pod
	s.b.Eventually(cluster.Patience, func() string {
		switch pods = s.running(image); len(pods) {
		case 0:
			return "no Pod runs " + image
		case 1:
			return ""
		}
		return fmt.Sprintf("%d Pods run %s, and not one", len(pods), image)
	})
	return pods[0]
}

// end ends a Pod.
func (s *scene) end(pod corev1.Pod, phase corev1.PodPhase) {
	s.b.Event("the Pod ends: %s", phase)
	cluster.End(s.b, s.client, pod, phase)
}

// everywhere waits until an agent runs on each of the nodes.
func (s *scene) everywhere(text string, nodes ...string) {
	s.b.Eventually(cluster.Patience, func() string {
		agents := s.running("example.com/agent")
		if len(agents) == 0 {
			return "no agent runs on any node"
		}
		for _, node := range nodes {
			if !slices.ContainsFunc(agents, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node }) {
				return text
			}
		}
		return ""
	})
}

// ended waits until a Job has a condition.
func (s *scene) ended(name string, kind batchv1.JobConditionType, text string) {
	s.b.Eventually(cluster.Patience, func() string {
		job, err := s.client.BatchV1().Jobs(s.namespace).Get(s.b.Context(), name, metav1.GetOptions{})
		s.must("reading the Job", err)
		for _, condition := range job.Status.Conditions {
			if condition.Type == kind && condition.Status == corev1.ConditionTrue {
				return ""
			}
		}
		if len(s.running("example.com/migrate")) > 0 {
			s.b.Fatalf("%s, and it is tried again", text)
		}
		return text + ", and no condition of the Job says so"
	})
}

// quotasKnown waits until the controller has seen each ResourceQuota.
func (s *scene) quotasKnown() {
	s.b.Eventually(cluster.Patience, func() string {
		quotas, err := s.client.CoreV1().ResourceQuotas(s.namespace).List(s.b.Context(), metav1.ListOptions{})
		s.must("listing ResourceQuotas", err)
		for _, quota := range quotas.Items {
			if len(quota.Status.Hard) < len(quota.Spec.Hard) {
				return "the status of a ResourceQuota stays empty"
			}
		}
		return ""
	})
}

// again is a Job like another one.
func again(job batchv1.Job) *batchv1.Job {
	second := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: *job.Spec.DeepCopy()}
	// The API server makes these for each Job.
	second.Spec.Selector = nil
	for _, label := range []string{"controller-uid", "job-name", batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		delete(second.Spec.Template.Labels, label)
	}
	return second
}
