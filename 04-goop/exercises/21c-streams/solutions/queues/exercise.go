package streams

import (
	"bufio"
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// pool decides which log is read next. Only Show uses it.
type pool struct {
	limit    int
	running  []string        // Pods that wait, and whose command was running when that was last seen
	over     []string        // Pods that wait, and whose command has ended
	taken    map[string]bool // Pods whose log is, or was, read
	open     int
	followed int
}

// ended says that a log is at its end.
type ended struct {
	followed bool
	err      error
}

// Show calls show with each line that the workers in the namespace write, until ctx ends. At most limit logs are open at once.
func Show(ctx context.Context, c kubernetes.Interface, namespace string, limit int, show func(pod, line string)) error {
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Without a resourceVersion, a watch begins with the Pods that there are.
	w, err := c.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	p := &pool{limit: limit, taken: map[string]bool{}}
	ends := make(chan ended, limit)
	for {
		for pod, follow := p.next(); pod != ""; pod, follow = p.next() {
			reading.Go(func() { ends <- ended{follow, read(ctx, c.CoreV1().Pods(namespace).GetLogs, pod, follow, show)} })
		}
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-w.ResultChan():
			if !open && ctx.Err() == nil {
				return errors.New("the watch has ended")
			}
			if pod, isPod := event.Object.(*corev1.Pod); isPod {
				p.add(pod)
			}
		case end := <-ends:
			p.free(end.followed)
			if end.err != nil && ctx.Err() == nil {
				return end.err
			}
		}
	}
}

// add puts a Pod into a queue. One that ends while it waits is in both; the second entry is skipped.
func (p *pool) add(pod *corev1.Pod) {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		p.running = append(p.running, pod.Name)
	case corev1.PodSucceeded, corev1.PodFailed:
		p.over = append(p.over, pod.Name)
	}
}

// next takes a place, and returns the Pod whose log is to be read, or an empty string.
func (p *pool) next() (pod string, follow bool) {
	if p.open == p.limit {
		return "", false
	}
	if pod = p.first(&p.over); pod == "" && p.followed < p.limit-1 {
		pod, follow = p.first(&p.running), true
	}
	if pod == "" {
		return "", false
	}
	p.taken[pod] = true
	p.open++
	if follow {
		p.followed++
	}
	return pod, follow
}

func (p *pool) first(queue *[]string) string {
	for len(*queue) > 0 {
		pod := (*queue)[0]
		*queue = (*queue)[1:]
		if !p.taken[pod] {
			return pod
		}
	}
	return ""
}

func (p *pool) free(followed bool) {
	p.open--
	if followed {
		p.followed--
	}
}

type getLogs = func(name string, options *corev1.PodLogOptions) *rest.Request

// read shows the log of a Pod to its end.
func read(ctx context.Context, logs getLogs, pod string, follow bool, show func(pod, line string)) error {
	stream, err := logs(pod, &corev1.PodLogOptions{Follow: follow}).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		show(pod, lines.Text())
	}
	return lines.Err()
}
