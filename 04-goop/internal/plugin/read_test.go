package plugin

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// restart is another container in the place of a worker's.
func (f *fake) restart(pod string) {
	f.alter(pod, func(changed *corev1.Pod) {
		work := &changed.Status.InitContainerStatuses[1]
		work.RestartCount++
		work.ContainerID += "again"
		work.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	})
}

// A worker that was killed is begun anew in the same pod, with a log of its own.
func TestAWorkerThatIsBegunAnewIsReadAnew(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			if opened++; opened == 1 {
				_, _ = io.WriteString(w, "first try\n")
				f.restart(goop + "-0-n1")
				return
			}
			_, _ = io.WriteString(w, "second try\n")
			f.finish(goop+"-0-n1", worker.Record{Tries: 2})
			f.over(goop, 1)
		})
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: first try\nn1: second try\n", ""}))
}

// After a restart of its node a worker that is over only repeats its record.
func TestAWorkerThatIsOverIsShownOnce(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		pod := f.worker(goop, "n1", 0, text("done\n"))
		f.finish(pod, worker.Record{Tries: 1})
		eventually(t, "the log is read", func() bool { return f.count("get logs") == 1 })
		f.restart(pod)
		f.finish(pod, worker.Record{Tries: 1})
		f.over(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: done\n", ""}))
}

// The node puts a log away that has grown too long.
func TestALogThatWasPutAwayMeanwhile(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			if opened++; opened == 1 {
				_, _ = io.WriteString(w, "one\ntwo\n")
				return
			}
			_, _ = io.WriteString(w, "six\n")
			f.finish(goop+"-0-n1", worker.Record{Tries: 1})
			f.over(goop, 1)
		})
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: one\nn1: two\n"))
	g.Expect(r.err).To(Equal("goop: n1: its node has put a part of its log away; some output may be missing\n"))
}

func TestALogThatFailsAndThenDoesNot(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			if opened++; opened < maxTries {
				answer(w, 500, failure(500, metav1.StatusReasonInternalError, "the node does not answer", ""))
				return
			}
			_, _ = io.WriteString(w, "at last\n")
		}), worker.Record{Tries: 1, Output: "record"})
		f.finish(f.worker(goop, "n2", 0, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 500, failure(500, metav1.StatusReasonInternalError, "the node does not answer", ""))
		}), worker.Record{Tries: 1, Output: "record"})
		f.over(goop, 2)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: at last", "n2: record", ""))
	g.Expect(r.err).To(HavePrefix("goop: n2: its output could not be had: "))
}

// FailFast and a deadline end workers; that of a node that is not ready nobody sees end.
func TestWorkersThatOutliveTheWorkAreGivenUp(t *testing.T) {
	defer func(before time.Duration) { stragglers = before }(stragglers)
	stragglers = time.Second
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, hangs)
		f.ends(goop, "n2", 0, "oh\n", 3)
		f.over(goop, 0, v1alpha1.Failure{Node: "n2", ExitCode: 3})
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(3))
	g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: begun", "n2: oh", ""))
	g.Expect(r.err).To(ContainSubstring("n1: the end of its output may be missing: the work was over before this worker was\n"))
}

// With thousands of pods their ends are delivered long after the Goop's: nobody is given up while pods are delivered.
func TestPodsThatAreDeliveredLate(t *testing.T) {
	defer func(before time.Duration) { stragglers = before }(stragglers)
	stragglers = time.Second
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		ended := make(chan struct{})
		late := f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			<-ended
			_, _ = io.WriteString(w, "late\n")
		})
		other := f.worker(goop, "n2", 0, text("done\n"))
		f.finish(other, worker.Record{Tries: 1})
		f.over(goop, 2)
		for range 15 {
			<-time.After(200 * time.Millisecond)
			f.alter(other, func(pod *corev1.Pod) { pod.Labels["another"] = "change" })
		}
		f.finish(late, worker.Record{Tries: 1})
		close(ended)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.err).To(BeEmpty())
	g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: late", "n2: done", ""))
}

func TestRunAsksWhetherTheOperatorRuns(t *testing.T) {
	defer func(before time.Duration) { unheard = before }(unheard)
	unheard = 100 * time.Millisecond
	g, f := NewWithT(t), newFake(t)
	r := f.run("run", "--timeout", "1500ms", "--", "work")
	g.Expect(r.code).To(Equal(124))
	g.Expect(r.err).To(HavePrefix("goop: nothing has taken up the Goop " + f.name() + " yet: does the operator run?\ngoop: timed out after 1.5s; "))
}

func TestRunWithoutARightToSeePods(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	forbidden := failure(403, metav1.StatusReasonForbidden, "pods are not for you", "")
	f.refuses("list pods", forbidden)
	f.refuses("watch pods", forbidden)
	f.operator(func(goop string) {
		f.over(goop, 2, v1alpha1.Failure{Node: "n2", ExitCode: 3, Output: "oh"})
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(3))
	g.Expect(r.out).To(Equal("n2: oh\n"))
	g.Expect(r.err).To(ContainSubstring("pods are not for you"))
}
