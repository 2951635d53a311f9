package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/expect"
)

// failureDelay is how long after the Job's condition FailureTarget its Flux must be Failed: the operator waits at most
// 15 seconds for the end of rank 0. The Job itself is Failed only when all pods have terminated.
const failureDelay = 30 * time.Second

// loss is a way to lose a pod.
type loss struct {
	how  string
	lose func(*testEnv, *corev1.Pod)
}

var losses = []loss{
	{"deleted", func(w *testEnv, pod *corev1.Pod) { w.delete(pod) }},
	{"evicted", func(w *testEnv, pod *corev1.Pod) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		Expect(env.Client.SubResource("eviction").Create(w.ctx, pod, eviction)).To(Succeed())
	}},
	{"killed", (*testEnv).kill},
}

// What takes long begins early, so that no process runs alone at the end.
var _ = Describe("A Flux that loses", SpecPriority(1), func() {
	for rank, who := range []string{"its leader", "a follower"} {
		for _, loss := range losses {
			spec(fmt.Sprintf("%s, %s before the quorum, is not Complete but Failed, or restarted", who, loss.how), func(w *testEnv) {
				w.losesBeforeQuorum(rank, loss)
			})
			spec(fmt.Sprintf("%s, %s while the command runs, is not Complete but Failed, or restarted", who, loss.how), func(w *testEnv) {
				w.losesAfterQuorum(rank, loss)
			})
		}
	}
})

// losesBeforeQuorum loses one of two running pods while the third one is not scheduled yet. Without the operator, a
// deleted leader would end with 0, so that the Job would be Complete although nothing ran, and a deleted follower would
// leave the leader waiting forever.
func (w *testEnv) losesBeforeQuorum(rank int, loss loss) {
	GinkgoHelper()
	pods := w.record()
	flux := w.create("early", v1alpha1.FluxSpec{
		Command: sh("exit 0"), Size: 3, MaxRestarts: 1, Template: &v1alpha1.PodTemplate{SchedulerName: byHand},
	})
	ranks := w.all(flux)
	for i, act := range []func(*corev1.PodStatus){started, ready} {
		w.bind(ranks[i], i)
		w.simulate(ranks[i], act)
		until(w, ranks[i], func(g Gomega, pod *corev1.Pod) { g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning)) })
	}
	loss.lose(w, ranks[rank])
	w.has(flux, v1alpha1.ConditionRestarting, metav1.ConditionTrue, "")
	w.attempt(flux, 2)
	for i, pod := range w.all(flux) {
		w.bind(pod, i)
	}
	w.complete(flux)
	Expect(flux.Status.Restarts).To(Equal(int32(1)))
	w.expectOnce(pods, flux, 2)
}

// losesAfterQuorum loses a pod of two Fluxes whose commands run. One of the Fluxes may be restarted.
func (w *testEnv) losesAfterQuorum(rank int, loss loss) {
	GinkgoHelper()
	command := sh(`test "$ATTEMPT" = 2 || sleep 600`)
	last := w.create("last", v1alpha1.FluxSpec{Command: command, Size: 2, Template: withAttempt()})
	again := w.create("again", v1alpha1.FluxSpec{Command: command, Size: 2, Template: withAttempt(), MaxRestarts: 1})
	w.running(last)
	w.running(again)
	ofLast, ofAgain := w.all(last)[rank], w.all(again)[rank]
	loss.lose(w, ofLast)
	loss.lose(w, ofAgain)

	reason := v1alpha1.ReasonCommandFailed
	if rank > 0 {
		reason = v1alpha1.ReasonBrokerFailed
	}
	message := w.failed(last, reason)
	Expect(message).To(ContainSubstring(fmt.Sprintf("rank %d", rank)))
	if !strings.Contains(message, v1alpha1.LogUnavailable) {
		Expect(last.Status.ExitCode).To(HaveValue(BeNumerically(">", 0)))
	}
	until(w, jobOf(last), func(g Gomega, job *batchv1.Job) {
		i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobFailureTarget })
		g.Expect(i).NotTo(Equal(-1))
		g.Expect(last.Status.CompletionTime.Sub(job.Status.Conditions[i].LastTransitionTime.Time)).To(BeNumerically("<", failureDelay))
	})
	w.noPodsRun(last)

	w.attempt(again, 2)
	w.complete(again)
	Expect(again.Status.Restarts).To(Equal(int32(1)))
}

// noPodsRun asserts that all pods of a Flux end within their grace period, or have ended.
func (w *testEnv) noPodsRun(flux *v1alpha1.Flux) {
	GinkgoHelper()
	Eventually(w.ctx, func(g Gomega) {
		for _, pod := range w.pods(flux) {
			g.Expect(hasEnded(&pod)).To(BeTrue(), "%s is %s", pod.Name, pod.Status.Phase)
		}
	}).WithTimeout(grace).WithPolling(expect.Interval).Should(Succeed())
}
