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

// history is what the API server told of the pods of a namespace's Goops, in its own order.
type history struct {
	mu sync.Mutex
	// begun are the pods whose work has been seen to run, or to have run.
	begun map[types.UID]worked
}

// worked is what a pod was for, and the last that it told.
type worked struct {
	goop, role, node, round string
	message                 string
}

// watch begins a history.
func (w *world) watch() *history {
	GinkgoHelper()
	c, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Client.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	watcher, err := c.Watch(w.ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	w.Expect(err).NotTo(HaveOccurred())
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
	told := worked{
		goop: pod.Labels[v1alpha1.LabelGoop], role: pod.Labels[v1alpha1.LabelRole],
		node: pod.Spec.NodeName, round: pod.Labels[v1alpha1.LabelRound],
	}
	if work.State.Terminated != nil {
		told.message = work.State.Terminated.Message
	}
	h.begun[pod.UID] = told
}

// of are the pods of a Goop, for its work or its cleanup, that have begun: how many there were for each "node/round".
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

// messages are what the pods of a Goop's cleanup left as their record.
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

// cleaned waits until a Goop's cleanup is known to have begun on so many nodes, each once, and returns these. What the
// history is told may come later than what the Goop tells.
func (w *world) cleaned(h *history, goop *v1alpha1.Goop, nodes int) []string {
	GinkgoHelper()
	var names []string
	w.Eventually(w.ctx, func(g Gomega) {
		counts := h.of(goop, v1alpha1.RoleCleanup)
		g.Expect(counts).To(And(HaveLen(nodes), HaveEach(1)))
		names = nil
		for place := range counts {
			names = append(names, strings.TrimSuffix(place, "/"))
		}
	}).WithTimeout(expect.Soon).WithPolling(expect.Interval).Should(Succeed())
	return names
}

// expectOnce asserts that each worker of a Goop that is recorded has begun in one pod, and in no other.
func (w *world) expectOnce(h *history, goop *v1alpha1.Goop) {
	GinkgoHelper()
	finished := len(w.recorded(goop).Finished)
	w.Eventually(w.ctx, func() map[string]int { return h.of(goop, v1alpha1.RoleWork) }).
		WithTimeout(expect.Soon).WithPolling(expect.Interval).Should(HaveLen(finished))
	w.Expect(h.of(goop, v1alpha1.RoleWork)).To(HaveEach(1))
}
