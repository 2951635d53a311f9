package everynode

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const name = "plain"

// scene is a DaemonSet, and the reader's code that waits for it.
type scene struct {
	b         *check.B
	entry     Entry
	wire      *kube.Wire
	namespace string
	sets      typed.DaemonSetInterface
	cancel    context.CancelFunc
	done      <-chan struct{}
	err       error
}

func newScene(b *check.B, entry Entry) *scene {
	s := &scene{b: b, entry: entry, wire: kube.NewWire(b), namespace: kube.Namespace(b)}
	s.sets = kube.Client(b).AppsV1().DaemonSets(s.namespace)
	labels := map[string]string{"app": name}
	container := corev1.Container{Name: "work", Image: "example.com/none"}
	_, err := s.sets.Create(b.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
			},
		},
	}, metav1.CreateOptions{})
	s.must("creating a DaemonSet", err)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

func (s *scene) get() *appsv1.DaemonSet {
	set, err := s.sets.Get(s.b.Context(), name, metav1.GetOptions{})
	s.must("reading the DaemonSet", err)
	return set
}

// status writes the status, as the DaemonSet controller does that has seen the last change. Each node has its Pod long before that is
// ready.
func (s *scene) status(nodes, ready int32) {
	s.b.Event("there are %d nodes, and %d are ready", nodes, ready)
	set := s.get()
	set.Status = appsv1.DaemonSetStatus{
		ObservedGeneration: set.Generation, DesiredNumberScheduled: nodes, CurrentNumberScheduled: nodes, UpdatedNumberScheduled: nodes,
		NumberReady: ready, NumberAvailable: ready, NumberUnavailable: nodes - ready,
	}
	_, err := s.sets.UpdateStatus(s.b.Context(), set, metav1.UpdateOptions{})
	s.must("writing the status", err)
}

// change changes the command.
func (s *scene) change() {
	s.b.Event("a user changes the DaemonSet")
	set := s.get()
	set.Spec.Template.Spec.Containers[0].Command = []string{"date"}
	_, err := s.sets.Update(s.b.Context(), set, metav1.UpdateOptions{})
	s.must("changing the DaemonSet", err)
}

func (s *scene) remove() {
	s.b.Event("a user deletes the DaemonSet")
	// The default of kubectl: with others, the API server waits for controllers.
	background := metav1.DeletePropagationBackground
	s.must("deleting the DaemonSet", s.sets.Delete(s.b.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
}

// wait calls the reader's code.
func (s *scene) wait() {
	ctx, cancel := context.WithCancel(s.b.Context())
	s.cancel = cancel
	s.b.Event("WaitDone is called")
	s.done = s.b.Go(func() {
		s.err = s.entry(ctx, s.wire.Client(), s.namespace, name)
		s.b.Event("WaitDone returned: %v", s.err)
	})
	s.b.Cleanup(func() { cancel(); <-s.done })
}

// waits asserts that the reader's code looks again and does not return. A watch is ended, so that it has to look: when it sends the
// request after the next one, it has seen what is there now.
func (s *scene) waits(why string) {
	before := len(s.wire.Requests())
	cut := before
	s.b.Eventually(patience, func() string {
		select {
		case <-s.done:
			s.b.Fatalf("%s, and WaitDone returned: %v", why, s.err)
		default:
		}
		now := len(s.wire.Requests())
		if now < before+2 {
			if s.wire.OpenWatches() > 0 && now >= cut {
				cut = now + 1
				s.wire.CutWatches()
				s.wire.Release()
			}
			return "WaitDone does not return, and sends no requests"
		}
		return ""
	})
}

// end waits until the reader's code returns.
func (s *scene) end() error {
	s.b.Eventually(patience, func() string {
		select {
		case <-s.done:
			return ""
		default:
			return "WaitDone does not return"
		}
	})
	return s.err
}

func (s *scene) returned() {
	if err := s.end(); err != nil {
		s.b.Fatalf("the work is done on all nodes, and WaitDone returned: %v", err)
	}
}
