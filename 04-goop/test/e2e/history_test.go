package e2e

import (
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/expect"
)

// history has the events of the pods of a namespace's Goops, in the API server's order.
type history struct {
	mu sync.Mutex
	// begun are the pods whose work is or was observed to run.
	begun map[types.UID]worked
}

// worked is the role of a pod, and its last state.
type worked struct {
	goop, role, node, round string
	message                 string
}

// watch starts a history.
func (w *testEnv) watch() *history {
	GinkgoHelper()
	watcher, err := env.Client.Watch(w.ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	Expect(err).NotTo(HaveOccurred())
	h := &history{begun: map[types.UID]worked{}}
	// It ends with the context of the spec.
	go func() {
		for event := range watcher.ResultChan() {
			if pod, isPod := event.Object.(*corev1.Pod); isPod && event.Type != watch.Deleted && pod.Labels[v1alpha1.LabelGoop] != "" {
				h.add(pod)
			}
		}
	}()
	return h
}

func (h *history) add(pod *corev1.Pod) {
	work := statusOf(pod)
	if work == nil || (work.State.Running == nil && work.State.Terminated == nil) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	last := worked{
		goop: pod.Labels[v1alpha1.LabelGoop], role: pod.Labels[v1alpha1.LabelRole],
		node: pod.Spec.NodeName, round: pod.Labels[v1alpha1.LabelRound],
	}
	if work.State.Terminated != nil {
		last.message = work.State.Terminated.Message
	}
	h.begun[pod.UID] = last
}

// of returns how many pods of a Goop have begun, for its work or its cleanup, by "node/round".
func (h *history) of(goop *v1alpha1.Goop, role string) map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := map[string]int{}
	for _, pod := range h.begun {
		if pod.goop == goop.Name && pod.role == role {
			counts[pod.node+"/"+pod.round]++
		}
	}
	return counts
}

// messages returns the records of the pods of a Goop's cleanup.
func (h *history) messages(goop *v1alpha1.Goop) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, pod := range h.begun {
		if pod.goop == goop.Name && pod.role == v1alpha1.RoleCleanup {
			all = append(all, pod.message)
		}
	}
	return all
}

// cleaned waits until the history has the start of a Goop's cleanup on a number of nodes, once on each, and returns these
// nodes. Events of pods may arrive later than those of the Goop, and the pods of a cleanup that has just begun have to start.
func (w *testEnv) cleaned(h *history, goop *v1alpha1.Goop, nodes int) []string {
	GinkgoHelper()
	var names []string
	Eventually(w.ctx, func(g Gomega) {
		counts := h.of(goop, v1alpha1.RoleCleanup)
		g.Expect(counts).To(And(HaveLen(nodes), HaveEach(1)))
		names = nil
		for place := range counts {
			names = append(names, strings.TrimSuffix(place, "/"))
		}
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
	return names
}

// expectOnce asserts that each recorded worker of a Goop has begun in exactly one pod.
func (w *testEnv) expectOnce(h *history, goop *v1alpha1.Goop) {
	GinkgoHelper()
	finished := len(w.recorded(goop).Finished)
	Eventually(w.ctx, func() map[string]int { return h.of(goop, v1alpha1.RoleWork) }).
		WithTimeout(expect.Soon).WithPolling(expect.Interval).Should(HaveLen(finished))
	Expect(h.of(goop, v1alpha1.RoleWork)).To(HaveEach(1))
}
