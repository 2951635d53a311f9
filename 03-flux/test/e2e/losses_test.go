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
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// swiftly is how long after the Job's condition FailureTarget its Flux is Failed: what rank 0 has to say is waited for,
// for at most 15 seconds. The Job itself is Failed only when all pods are gone.
const swiftly = 30 * time.Second

// loss is a way in which a pod goes.
type loss struct {
	how  string
	lose func(*world, *corev1.Pod)
}

var losses = []loss{
	{"deleted", func(w *world, pod *corev1.Pod) { w.delete(pod) }},
	{"evicted", func(w *world, pod *corev1.Pod) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		w.Expect(env.Client.SubResource("eviction").Create(w.ctx, pod, eviction)).To(Succeed())
	}},
	{"killed", (*world).kill},
}

var _ = env.SideBySide("A Flux that loses", atOnce, lossSpecs()...)

func lossSpecs() []e2e.Scenario {
	var specs []e2e.Scenario
	for rank, who := range []string{"its leader", "a follower"} {
		for _, loss := range losses {
			specs = append(specs,
				spec(fmt.Sprintf("%s, %s before the quorum, is not Complete but Failed, or started anew", who, loss.how), func(w *world) {
					w.losesBeforeQuorum(rank, loss)
				}),
				spec(fmt.Sprintf("%s, %s while the command runs, is not Complete but Failed, or started anew", who, loss.how), func(w *world) {
					w.losesAfterQuorum(rank, loss)
				}))
		}
	}
	return specs
}

// losesBeforeQuorum loses a pod of two that run while the third is nowhere yet. Of brokers alone, a leader that
// is deleted then ends with 0, so that the Job is Complete though nothing ran, and a follower that is deleted
// leaves the leader to wait for ever.
func (w *world) losesBeforeQuorum(rank int, loss loss) {
	GinkgoHelper()
	pods := w.record()
	flux := w.create("early", v1alpha1.FluxSpec{
		Command: sh("exit 0"), Size: 3, MaxRestarts: 1, Template: &v1alpha1.PodTemplate{SchedulerName: byHand},
	})
	ranks := w.all(flux)
	for i, act := range []func(*corev1.PodStatus){started, ready} {
		w.bind(ranks[i], i)
		w.play(ranks[i], act)
		until(w, ranks[i], func(g Gomega, pod *corev1.Pod) { g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning)) })
	}
	loss.lose(w, ranks[rank])
	w.has(flux, v1alpha1.ConditionRestarting, metav1.ConditionTrue, "")
	w.attempt(flux, 2)
	for i, pod := range w.all(flux) {
		w.bind(pod, i)
	}
	w.complete(flux)
	w.Expect(flux.Status.Restarts).To(Equal(int32(1)))
	w.expectOnce(pods, flux, 2)
}

// losesAfterQuorum loses a pod of two Fluxes whose commands run. One of them may be started anew.
func (w *world) losesAfterQuorum(rank int, loss loss) {
	GinkgoHelper()
	command := sh(`test "$ATTEMPT" = 2 || sleep 600`)
	last := w.create("last", v1alpha1.FluxSpec{Command: command, Size: 2, Template: tellAttempt()})
	again := w.create("again", v1alpha1.FluxSpec{Command: command, Size: 2, Template: tellAttempt(), MaxRestarts: 1})
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
	w.Expect(message).To(ContainSubstring(fmt.Sprintf("rank %d", rank)))
	if !strings.Contains(message, v1alpha1.LogUnavailable) {
		w.Expect(last.Status.ExitCode).To(HaveValue(BeNumerically(">", 0)))
	}
	until(w, jobOf(last), func(g Gomega, job *batchv1.Job) {
		i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobFailureTarget })
		g.Expect(i).NotTo(Equal(-1))
		g.Expect(last.Status.CompletionTime.Sub(job.Status.Conditions[i].LastTransitionTime.Time)).To(BeNumerically("<", swiftly))
	})
	w.noPodsRun(last)

	w.attempt(again, 2)
	w.complete(again)
	w.Expect(again.Status.Restarts).To(Equal(int32(1)))
}

// noPodsRun asserts that all pods of a Flux end within their grace, or have ended.
func (w *world) noPodsRun(flux *v1alpha1.Flux) {
	GinkgoHelper()
	w.Eventually(w.ctx, func(g Gomega) {
		for _, pod := range w.pods(flux) {
			g.Expect(hasEnded(&pod)).To(BeTrue(), "%s is %s", pod.Name, pod.Status.Phase)
		}
	}).WithTimeout(grace).WithPolling(expect.Interval).Should(Succeed())
}
