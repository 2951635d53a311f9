package streams

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a namespace with workers, and one call of Show.
type scene struct {
	b         *check.B
	entry     Entry
	wire      *kube.Wire
	client    kubernetes.Interface
	reader    kubernetes.Interface
	namespace string
	kubelet   *kubelet
	pods      map[string]*corev1.Pod
	ctx       context.Context
	end       context.CancelFunc
	returned  <-chan struct{}
	err       error

	mu    sync.Mutex
	shown map[string][]string
	// slow holds the calls of show up, and busy is how many are held.
	slow chan struct{}
	busy int
}

func newScene(b *check.B, entry Entry) *scene {
	wire := kube.NewWire(b)
	s := &scene{
		b: b, entry: entry, wire: wire, client: kube.Client(b), reader: wire.Client(), namespace: kube.Namespace(b), kubelet: newKubelet(),
		pods: map[string]*corev1.Pod{}, shown: map[string][]string{},
	}
	wire.Before(s.kubelet.before)
	s.ctx, s.end = context.WithCancel(b.Context())
	b.Cleanup(s.end)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// call calls Show.
func (s *scene) call() {
	s.b.Event("Show is called, with a limit of %d", limit)
	s.returned = s.b.Go(func() { s.err = s.entry(s.ctx, s.reader, s.namespace, limit, s.show) })
}

func (s *scene) show(pod, line string) {
	s.b.Event("  shown: %s: %s", pod, line)
	s.mu.Lock()
	defer s.mu.Unlock()
	if slow := s.slow; slow != nil {
		s.busy++
		s.mu.Unlock()
		<-slow
		s.mu.Lock()
	}
	s.shown[pod] = append(s.shown[pod], line)
}

// endsWhileItShows ends the context during a call of show, and asserts that Show has not returned before the end of that call.
func (s *scene) endsWhileItShows(name string) {
	slow := make(chan struct{})
	s.mu.Lock()
	s.slow = slow
	s.mu.Unlock()
	s.writes(name)
	s.eventually(func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.busy == 0 {
			return "a command that runs has written a line, and it is not shown"
		}
		return ""
	})
	s.b.Event("the context of Show ends during a call of show")
	s.end()
	defer close(slow)
	select {
	case <-s.returned:
		s.b.Fatalf("Show has returned, and a call of show that it has begun still runs")
	case <-time.After(s.b.Patience(moment)):
	}
}

// lines are those of a Pod that were shown.
func (s *scene) lines(pod string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[pod]
}

// create creates a Pod, as the controller of workers.
func (s *scene) create(name string) {
	pod, err := s.client.CoreV1().Pods(s.namespace).Create(s.b.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "work", Image: "busybox"}},
		},
	}, metav1.CreateOptions{})
	s.must("creating a Pod", err)
	s.pods[name] = pod
}

// phase writes the status of a Pod, as the kubelet.
func (s *scene) phase(name string, phase corev1.PodPhase, state corev1.ContainerState) {
	pod := s.pods[name]
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "work", Image: "busybox", State: state}}
	pod, err := s.client.CoreV1().Pods(s.namespace).UpdateStatus(s.b.Context(), pod, metav1.UpdateOptions{})
	s.must("writing the status of a Pod", err)
	s.pods[name] = pod
	s.b.Event("%s is %s", name, phase)
}

// runs begins the command of a Pod.
func (s *scene) runs(name string) {
	s.kubelet.begin(name)
	s.phase(name, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
}

// writes lets the command of a Pod write one more line.
func (s *scene) writes(name string) { s.kubelet.write(name) }

// ends lets the command of a Pod end. Some have failed.
func (s *scene) ends(name string) {
	s.kubelet.end(name)
	phase, terminated := corev1.PodSucceeded, &corev1.ContainerStateTerminated{}
	if name[len(name)-1]%3 == 0 {
		phase, terminated = corev1.PodFailed, &corev1.ContainerStateTerminated{ExitCode: 1}
	}
	s.phase(name, phase, corev1.ContainerState{Terminated: terminated})
}

// eventually waits, and ends the behaviour if Show has returned.
func (s *scene) eventually(condition func() string) {
	s.b.Eventually(patience, func() string {
		text := condition()
		if text == "" {
			return ""
		}
		select {
		case <-s.returned:
			s.b.Fatalf("Show has returned, and its context has not ended; its error is: %v", s.err)
		default:
		}
		return text
	})
}

// shows waits until the lines of a Pod are shown.
func (s *scene) shows(name string) {
	s.eventually(func() string {
		if len(s.lines(name)) < len(s.kubelet.lines(name)) {
			return fmt.Sprintf("a command that runs has written a line, and it is not shown (%d logs are open)", s.kubelet.openNow())
		}
		return ""
	})
}

// watches waits until the Pods are watched.
func (s *scene) watches() {
	s.eventually(func() string {
		if s.wire.OpenWatches() == 0 {
			return "no watch of the Pods is open: Show polls"
		}
		return ""
	})
}

// missing says that the output of a command is not complete, or returns an empty string.
func (s *scene) missing(name string) string {
	if len(s.lines(name)) < len(s.kubelet.lines(name)) {
		// Which of them it is depends on the speed of the machine.
		return fmt.Sprintf("a command has ended, and its output is not shown; %d logs are open", s.kubelet.openNow())
	}
	return ""
}

// stop ends the context, and waits until Show has returned.
func (s *scene) stop() {
	s.b.Event("the context ends")
	s.end()
	s.b.Eventually(patience, func() string {
		select {
		case <-s.returned:
			return ""
		default:
			return "the context has ended, and Show has not returned"
		}
	})
}

// closed waits until no log is open.
func (s *scene) closed() {
	s.b.Eventually(patience, func() string {
		if s.kubelet.openNow() > 0 {
			return "Show has returned, and a log is still open"
		}
		return ""
	})
}

// inOrder compares what was shown with what was written.
func (s *scene) inOrder(b *check.B) {
	for i := range workers {
		shown := s.lines(name(i))
		if sets.New(shown...).Len() < len(shown) {
			b.Fatalf("a line of a Pod was shown twice")
		}
	}
	for i := range workers {
		lines := s.kubelet.lines(name(i))
		for at, line := range s.lines(name(i)) {
			if at >= len(lines) {
				b.Fatalf("%s has written %d lines, and %q was shown after them", name(i), len(lines), line)
			}
			if line != lines[at] {
				b.Fatalf("the line %d of %s is %q, and %q was shown in its place", at+1, name(i), lines[at], line)
			}
		}
	}
}
