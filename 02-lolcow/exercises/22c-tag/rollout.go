package tag

import (
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// running is what a call of the script has led to.
type running struct {
	image      string
	generation int64
	pod        types.UID
}

// expect waits for the end of the rollout, and asserts what the Pod has printed.
func (l *loop) expect(text string) running {
	var now running
	l.b.Eventually(patience, func() string {
		deployment, why := l.rolledOut()
		if why != "" {
			return why
		}
		pod, why := l.pod()
		if why != "" {
			return why
		}
		line, why := l.firstLine(pod)
		if why != "" {
			return why
		}
		l.b.Event("the Pod has printed: %s", line)
		if want := text + " in " + l.namespace; line != want {
			l.b.Fatalf("the last build says %q, and the Pod %q", want, line)
		}
		now = running{deployment.Spec.Template.Spec.Containers[0].Image, deployment.Generation, pod.UID}
		return ""
	})
	return now
}

// same asserts that the second call has changed nothing.
func (l *loop) same(before, after running) {
	switch {
	case before.image != after.image:
		l.b.Fatalf("nothing has changed, and the Deployment has another image")
	case before.generation != after.generation:
		l.b.Fatalf("nothing has changed, and the Deployment was changed")
	case before.pod != after.pod:
		l.b.Fatalf("nothing has changed, and the Pod was replaced")
	}
}

// remove deletes the Deployment and its Pod, and waits until they are gone.
func (l *loop) remove() {
	l.b.Event("a user deletes the Deployment")
	// The Deployment goes last.
	l.must("deleting the Deployment", l.client.AppsV1().Deployments(l.namespace).DeleteCollection(l.b.Context(),
		metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, metav1.ListOptions{}))
	l.b.Eventually(patience, func() string {
		list, err := l.client.AppsV1().Deployments(l.namespace).List(l.b.Context(), metav1.ListOptions{})
		l.must("listing Deployments", err)
		if len(list.Items) > 0 {
			return "the Deployment is not deleted"
		}
		return ""
	})
}

// rolledOut returns the Deployment, once its controller has done all that it was asked for.
func (l *loop) rolledOut() (*appsv1.Deployment, string) {
	list, err := l.client.AppsV1().Deployments(l.namespace).List(l.b.Context(), metav1.ListOptions{})
	l.must("listing Deployments", err)
	if len(list.Items) != 1 {
		l.b.Fatalf("after deploy.sh there are %d Deployments, and there should be 1", len(list.Items))
	}
	d := &list.Items[0]
	if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != 1 || d.Status.Replicas != 1 || d.Status.AvailableReplicas != 1 {
		if why := l.stuck(); why != "" {
			l.b.Fatalf("%s", why)
		}
		return nil, "the rollout of the Deployment does not end"
	}
	return d, ""
}

// stuck says why no Pod will run, if that is certain.
func (l *loop) stuck() string {
	for _, pod := range l.pods() {
		for _, status := range pod.Status.ContainerStatuses {
			if waiting := status.State.Waiting; waiting != nil && strings.Contains(waiting.Reason, "Image") {
				return "the Pod does not start: its image is not on the node"
			}
		}
	}
	return ""
}

func (l *loop) pods() []corev1.Pod {
	list, err := l.client.CoreV1().Pods(l.namespace).List(l.b.Context(), metav1.ListOptions{})
	l.must("listing Pods", err)
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// pod returns the one Pod that is there, once it runs.
func (l *loop) pod() (*corev1.Pod, string) {
	pods := l.pods()
	if len(pods) != 1 {
		return nil, fmt.Sprintf("there are %d Pods", len(pods))
	}
	if pods[0].Status.Phase != corev1.PodRunning {
		return nil, "the Pod does not run"
	}
	return &pods[0], ""
}

// firstLine is what the Pod has printed.
func (l *loop) firstLine(pod *corev1.Pod) (string, string) {
	stream, err := l.client.CoreV1().Pods(l.namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(l.b.Context())
	if err != nil {
		return "", fmt.Sprintf("reading the log: %v", err)
	}
	defer stream.Close()
	content, err := io.ReadAll(stream)
	if err != nil {
		return "", fmt.Sprintf("reading the log: %v", err)
	}
	line, _, whole := strings.Cut(string(content), "\n")
	if !whole {
		return "", "the Pod prints nothing"
	}
	return line, ""
}
