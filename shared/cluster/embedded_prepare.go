package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// ManualPodAnnotation on a pod, with any value, keeps the embedded cluster's hands off a pod's status: it
// stays Pending until the test patches its status itself. It is deleted like any other pod.
const ManualPodAnnotation = "harness.example.com/manual-pod"

// ManualPodsLabel on a namespace of an embedded cluster, with the value "true", gives every pod that
// is created there the ManualPodAnnotation: a pod made by a ReplicaSet runs within milliseconds,
// too soon for a test to annotate it.
const ManualPodsLabel = "harness.example.com/manual-pods"

// ManualNodeLabel on a Node, with any value, keeps the embedded cluster's hands off a node that a test makes: its
// status, its lease and what becomes of its pods are the test's to write.
const ManualNodeLabel = "harness.example.com/manual-node"

//go:embed manual-pods.yaml
var manualPolicy string

// prepareTimeout bounds the time from an API server that responds to a cluster that takes pods.
const prepareTimeout = time.Minute

// prepareEmbedded makes what no kubelet and no kubeadm makes here, and waits until pods can run.
func prepareEmbedded(ctx context.Context, cfg *rest.Config, name string) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, node := range []string{name + "-worker", name + "-worker2"} {
		if _, err := clients.CoreV1().Nodes().Create(ctx, simulatedNode(node), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating node %s: %w", node, err)
		}
	}
	if err := createAll(ctx, cfg, manualPolicy); err != nil {
		return err
	}
	if err := waitForNodes(ctx, clients); err != nil {
		return err
	}
	err = poll(ctx, "the default ServiceAccount", func(ctx context.Context) (bool, error) {
		_, err := clients.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return waitForManualPods(ctx, clients)
}

// waitForManualPods waits until the policy on manual pods is in force, which is some time after it was
// created, by pods that the API server admits but does not keep.
func waitForManualPods(ctx context.Context, clients kubernetes.Interface) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "manual-pods-probe", Labels: map[string]string{ManualPodsLabel: "true"},
	}}
	if _, err := clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "example.com/never-pulled"}}},
	}
	err := poll(ctx, "the policy on manual pods", func(ctx context.Context) (bool, error) {
		admitted, err := clients.CoreV1().Pods(namespace.Name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err
		}
		_, annotated := admitted.Annotations[ManualPodAnnotation]
		return annotated, nil
	})
	if err != nil {
		return err
	}
	if err := clients.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting a namespace: %w", err)
	}
	return nil
}

func simulatedNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: runtime.GOARCH,
	}}}
}

// createAll creates the objects of a YAML text in order.
func createAll(ctx context.Context, cfg *rest.Config, text string) error {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, document := range splitYAML(text) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return fmt.Errorf("reading an object: %w", err)
		}
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// waitForNodes waits until every node is ready.
func waitForNodes(ctx context.Context, clients kubernetes.Interface) error {
	return poll(ctx, "the nodes to be ready", func(ctx context.Context) (bool, error) {
		nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, node := range nodes.Items {
			if !nodeReady(node) {
				return false, nil
			}
		}
		return len(nodes.Items) > 0, nil
	})
}

func nodeReady(node corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// poll asks until the condition is true or ctx ends. An error counts as false: right after a start
// the API server rejects now and then. The last one is reported.
func poll(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var ok bool
		ok, last = done(ctx)
		return ok, nil
	})
	if err == nil {
		return nil
	}
	if last != nil {
		return fmt.Errorf("waiting for %s: %w (last error: %w)", what, err, last)
	}
	return fmt.Errorf("waiting for %s: %w", what, err)
}
