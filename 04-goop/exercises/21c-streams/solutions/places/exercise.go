package streams

import (
	"bufio"
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// reader reads the logs of all Pods. Each has a goroutine, which waits for a place.
type reader struct {
	client   kubernetes.Interface
	show     func(pod, line string)
	open     chan struct{} // a place for each log that is open
	followed chan struct{} // and one for each of these whose command was running
	done     sync.WaitGroup
}

// Show calls show with each line that the workers in the namespace write, until ctx ends. At most limit logs are open at once.
func Show(ctx context.Context, c kubernetes.Interface, namespace string, limit int, show func(pod, line string)) error {
	r := &reader{client: c, show: show, open: make(chan struct{}, limit), followed: make(chan struct{}, limit-1)}
	defer r.done.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Without a resourceVersion, a watch begins with the Pods that there are.
	w, err := c.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	ended := map[types.UID]func(){}
	for event := range w.ResultChan() {
		pod, isPod := event.Object.(*corev1.Pod)
		if !isPod || pod.Status.Phase == corev1.PodPending {
			continue
		}
		if ended[pod.UID] == nil {
			over := make(chan struct{})
			ended[pod.UID] = sync.OnceFunc(func() { close(over) })
			r.done.Go(func() { r.read(ctx, pod, over) })
		}
		if pod.Status.Phase != corev1.PodRunning {
			ended[pod.UID]()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the watch has ended")
}

// read waits for a place, and reads the log of a Pod to its end.
func (r *reader) read(ctx context.Context, pod *corev1.Pod, over <-chan struct{}) {
	select {
	case <-over:
	case r.followed <- struct{}{}:
		defer func() { <-r.followed }()
	case <-ctx.Done():
		return
	}
	select {
	case r.open <- struct{}{}:
		defer func() { <-r.open }()
	case <-ctx.Done():
		return
	}
	stream, err := r.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		r.show(pod.Name, lines.Text())
	}
}
