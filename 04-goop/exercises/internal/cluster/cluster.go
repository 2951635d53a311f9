// Package cluster is what checks have in common that run on the embedded cluster: nodes of their own, and Pods whose ends they
// decide.
package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"example.com/workbook/shared/exercise/check"
)

// Patience is for what the scheduler and the controllers do. The Job controller waits ten seconds before it starts a Pod again.
const Patience = 45 * time.Second

// manual has the embedded cluster leave the status of a Pod to the check.
const manual = "harness.example.com/manual-pod"

// own is the label, and the taint, of a check's nodes. The value is a namespace.
const own = "exercise"

// Node creates a node for the Pods of a namespace alone, and waits until it is ready. It is deleted at the end of the behaviour.
func Node(b *check.B, client kubernetes.Interface, namespace, name string, taints ...corev1.Taint) string {
	full := namespace + "-" + name
	taints = append(taints, corev1.Taint{Key: own, Value: namespace, Effect: corev1.TaintEffectNoSchedule})
	nodes := client.CoreV1().Nodes()
	_, err := nodes.Create(b.Context(), &corev1.Node{
		// The last three are those that a kubelet sets.
		ObjectMeta: metav1.ObjectMeta{Name: full, Labels: map[string]string{
			own: namespace, corev1.LabelHostname: full, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Spec: corev1.NodeSpec{Taints: taints},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a node: %v", err)
	}
	b.Cleanup(func() { _ = nodes.Delete(context.WithoutCancel(b.Context()), full, metav1.DeleteOptions{}) })
	b.Eventually(Patience, func() string {
		node, err := nodes.Get(b.Context(), full, metav1.GetOptions{})
		if err != nil {
			b.Fatalf("reading a node: %v", err)
		}
		if len(node.Spec.Taints) > len(taints) || len(node.Status.Conditions) == 0 {
			return "a node of the check does not become ready"
		}
		return ""
	})
	return full
}

// Adopt has Pods of this template run on the nodes of a namespace, and end when the check says so.
func Adopt(namespace string, meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	metav1.SetMetaDataAnnotation(meta, manual, "true")
	// Without a kubelet no Pod that is deleted would end.
	spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	if spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{}
	}
	spec.NodeSelector[own] = namespace
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: own, Operator: corev1.TolerationOpExists})
}

// Active are the Pods of a namespace that have a node, and have not ended.
func Active(b *check.B, client kubernetes.Interface, namespace string) []corev1.Pod {
	list, err := client.CoreV1().Pods(namespace).List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatalf("listing Pods: %v", err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !ended {
			pods = append(pods, pod)
		}
	}
	return pods
}

// End ends a Pod.
func End(b *check.B, client kubernetes.Interface, pod corev1.Pod, phase corev1.PodPhase) {
	code := int32(0)
	if phase == corev1.PodFailed {
		code = 1
	}
	pods := client.CoreV1().Pods(pod.Namespace)
	// Others write Pods, too.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := pods.Get(b.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Status.Phase = phase
		current.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}},
		}}
		_, err = pods.UpdateStatus(b.Context(), current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		b.Fatalf("ending a Pod: %v", err)
	}
}
