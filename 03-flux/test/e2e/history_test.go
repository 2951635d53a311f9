package e2e

import (
	"fmt"
	"maps"
	"strconv"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// history is what the API server reported of a namespace's pods, in its own order.
type history struct {
	mu sync.Mutex
	// alive are the attempts of the pods that the next attempt waits for: all that exist, except orphans that have ended.
	alive map[types.UID]attempt
	// made counts the created pods of each rank.
	made map[rank]int
	// mixed describes pods that were created while pods of another attempt of the same Flux existed.
	mixed []string
}

type attempt struct{ flux, number string }

type rank struct {
	attempt
	number int
}

// record starts a history.
func (w *testEnv) record() *history {
	GinkgoHelper()
	watcher, err := env.Client.Watch(w.ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	Expect(err).NotTo(HaveOccurred())
	h := &history{alive: map[types.UID]attempt{}, made: map[rank]int{}}
	// The watch ends with the context of the spec.
	go func() {
		for event := range watcher.ResultChan() {
			if pod, isPod := event.Object.(*corev1.Pod); isPod {
				h.add(event.Type, pod)
			}
		}
	}()
	return h
}

func (h *history) add(event watch.EventType, pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := attempt{flux: pod.Labels[instanceLabel], number: pod.Labels[attemptLabel]}
	switch event {
	case watch.Added:
		for _, other := range h.alive {
			if other.flux == of.flux && other.number != of.number {
				h.mixed = append(h.mixed, fmt.Sprintf("%s of attempt %s was created while a pod of attempt %s existed", pod.Name, of.number, other.number))
			}
		}
		h.alive[pod.UID] = of
		h.made[rank{of, rankOf(pod)}]++
	case watch.Modified:
		if hasEnded(pod) && metav1.GetControllerOf(pod) == nil {
			delete(h.alive, pod.UID)
		}
	case watch.Deleted:
		delete(h.alive, pod.UID)
	}
}

// expectOnce asserts the number of attempts of a Flux, that each rank was started once in each of them, and that no
// attempt began before the pods of the previous one were deleted, or had ended as orphans.
func (w *testEnv) expectOnce(h *history, flux *v1alpha1.Flux, attempts int) {
	GinkgoHelper()
	want := map[rank]int{}
	for i := range attempts {
		for j := range int(flux.Spec.Size) {
			want[rank{attempt{flux.Name, strconv.Itoa(i + 1)}, j}] = 1
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	made := maps.Clone(h.made)
	maps.DeleteFunc(made, func(r rank, _ int) bool { return r.flux != flux.Name })
	Expect(made).To(Equal(want))
	Expect(h.mixed).To(BeEmpty())
}
