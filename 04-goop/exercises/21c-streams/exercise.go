//go:build start

package streams

import (
	"bufio"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Show calls show with each line that the workers in the namespace write, until ctx ends. At most limit logs are open at once.
func Show(ctx context.Context, c kubernetes.Interface, namespace string, limit int, show func(pod, line string)) error {
	// Without a resourceVersion, a watch begins with the Pods that there are.
	w, err := c.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, isPod := event.Object.(*corev1.Pod)
		if !isPod || pod.Status.Phase == corev1.PodPending {
			continue
		}
		// TODO: this reads one log, to its end, and does not notice meanwhile that another Pod has ended.
		if err := read(ctx, c, pod, show); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the watch has ended")
}

// read follows the log of one Pod, until the command of the Pod has ended.
func read(ctx context.Context, c kubernetes.Interface, pod *corev1.Pod, show func(pod, line string)) error {
	stream, err := c.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		show(pod.Name, lines.Text())
	}
	return lines.Err()
}
