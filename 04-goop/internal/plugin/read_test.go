package plugin

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// restart replaces the container of a worker by another one.
func (f *fake) restart(pod string) {
	f.alter(pod, func(changed *corev1.Pod) {
		work := &changed.Status.InitContainerStatuses[1]
		work.RestartCount++
		work.ContainerID += "again"
		work.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	})
}

// A worker that was killed is restarted in the same pod, with a log of its own.
func TestAWorkerThatIsRestartedIsReadAgain(t *testing.T) {
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
			f.end(goop, 1)
		})
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: first try\nn1: second try\n",
		"goop: n1: its container was restarted; what it wrote before that may be missing\n"}))
}

// After a restart of its node an ended worker only repeats its record.
func TestAnEndedWorkerIsShownOnce(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		pod := f.worker(goop, "n1", 0, text("done\n"))
		f.finish(pod, worker.Record{Tries: 1})
		eventually(t, "the log is read", func() bool { return f.count("get logs") == 1 })
		f.restart(pod)
		f.finish(pod, worker.Record{Tries: 1})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: done\n", ""}))
}

// The kubelet rotates a log that has grown too long.
func TestALogThatWasRotatedMeanwhile(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			if opened++; opened == 1 {
				_, _ = io.WriteString(w, "one\ntwo\n")
				return
			}
			linesFrom(5, "six\n")(w, r)
			f.finish(goop+"-0-n1", worker.Record{Tries: 1})
			f.end(goop, 1)
		})
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: one\nn1: two\nn1: six\n"))
	g.Expect(r.err).To(Equal("goop: n1: its node has rotated its log; some output may be missing\n"))
}

func TestALogThatFailsAndThenDoesNot(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			if opened++; opened < maxTries {
				respond(w, 500, failure(500, metav1.StatusReasonInternalError, "the node does not respond", ""))
				return
			}
			_, _ = io.WriteString(w, "at last\n")
		}), worker.Record{Tries: 1, Output: "record"})
		f.finish(f.worker(goop, "n2", 0, func(w http.ResponseWriter, _ *http.Request) {
			respond(w, 500, failure(500, metav1.StatusReasonInternalError, "the node does not respond", ""))
		}), worker.Record{Tries: 1, Output: "record"})
		f.end(goop, 2)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: at last", "n2: record", ""))
	g.Expect(r.err).To(HavePrefix("goop: n2: its output is not available: "))
}

// FailFast and a deadline end workers, but the end of a worker on a node that is not ready is never observed.
func TestWorkersThatOutliveTheWorkAreGivenUp(t *testing.T) {
	defer func(before time.Duration) { stragglers = before }(stragglers)
	stragglers = 3 * time.Second // in which the output of both is read, also on a busy machine
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, hangs)
		f.ends(goop, "n2", 0, "oh\n", 3)
		f.end(goop, 0, v1alpha1.Failure{Node: "n2", ExitCode: 3})
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(3))
	g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: begun", "n2: oh", ""))
	g.Expect(r.err).To(ContainSubstring("n1: the end of its output may be missing: the Goop ended before this worker did\n"))
}

// With thousands of pods, their ends arrive long after the end of the Goop. No worker is given up while pods arrive.
func TestPodsThatAreDeliveredLate(t *testing.T) {
	defer func(before time.Duration) { stragglers = before }(stragglers)
	stragglers = 3 * time.Second
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		ended := make(chan struct{})
		late := f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			<-ended
			_, _ = io.WriteString(w, "late\n")
		})
		other := f.worker(goop, "n2", 0, text("done\n"))
		f.finish(other, worker.Record{Tries: 1})
		f.end(goop, 2)
		for range 25 { // in all longer than stragglers; the time between two is a fifteenth of it
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
	defer func(before time.Duration) { unobserved = before }(unobserved)
	unobserved = 100 * time.Millisecond
	g, f := NewWithT(t), newFake(t)
	program := f.begin("run", "--", "work")
	eventually(t, "the notice", func() bool { return strings.Contains(program.err.String(), "is the operator running?\n") })
	program.signals <- os.Interrupt
	r := program.end(t)
	g.Expect(r.code).To(Equal(130))
	g.Expect(r.err).To(HavePrefix("goop: no operator has observed the Goop " + f.name() + " yet: is the operator running?\ngoop: interrupted; "))
}

func TestRunWithoutAPermissionToListPods(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	forbidden := failure(403, metav1.StatusReasonForbidden, "pods are not for you", "")
	f.rejects("list pods", forbidden)
	f.rejects("watch pods", forbidden)
	f.operator(func(goop string) {
		f.end(goop, 2, v1alpha1.Failure{Node: "n2", ExitCode: 3, Output: "oh"})
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(3))
	g.Expect(r.out).To(Equal("n2: oh\n"))
	g.Expect(r.err).To(ContainSubstring("pods are not for you"))
}

// After its restart a kubelet does not know its pods for a moment.
func TestALogThatIsNotFoundForAMoment(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(w http.ResponseWriter, _ *http.Request) {
			if opened++; opened == 1 {
				respond(w, 404, failure(404, metav1.StatusReasonNotFound, "pods not found", ""))
				return
			}
			_, _ = io.WriteString(w, "all of it\n")
		}), worker.Record{Tries: 1, Output: "record"})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: all of it\n"))
	g.Expect(r.err).To(BeEmpty())
}

// Failures to read the log while the command ran do not count for the reading of the whole log.
func TestTriesAreCountedAgainWhenTheCommandHasEnded(t *testing.T) {
	g := NewWithT(t)
	var screen buffer
	s := newSession(&app{console: newConsole(streamsTo(&screen)), clock: clock.RealClock{}}, nil, &v1alpha1.Goop{})
	s.toTheEnd, s.live = true, true
	w := &workerState{facts: facts{begun: true}, phase: reading}
	for range maxTries {
		s.onTrouble(w, io.ErrUnexpectedEOF)
	}
	s.update(w, facts{begun: true, ended: true})
	s.onTrouble(w, io.ErrUnexpectedEOF)
	g.Expect(w.lost).To(BeEmpty())
	g.Expect(w.phase).To(Equal(resting), "it is read again")
}

func TestRunEndsThoughPodsAreNeverListed(t *testing.T) {
	defer func(before time.Duration) { stragglers = before }(stragglers)
	stragglers = 100 * time.Millisecond
	g, f := NewWithT(t), newFake(t)
	broken := failure(500, metav1.StatusReasonInternalError, "etcd does not respond", "")
	f.rejects("list pods", broken)
	f.rejects("watch pods", broken)
	f.operator(func(goop string) { f.end(goop, 2) })
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.err).To(ContainSubstring("etcd does not respond"))
	g.Expect(r.err).To(ContainSubstring("the output of 2 of 2 workers is not available"))
	g.Expect(f.all()).To(BeEmpty())
}

// During the work, an authorizer that does not respond denies a request that it permitted before.
func TestRunOutlivesAMomentaryDenial(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) { f.waits(goop, v1alpha1.ReasonNoEligibleNodes, "there is none") })
	p := f.start("run", "--", "work")
	eventually(t, "the notice", func() bool { return strings.Contains(p.err.String(), "there is none") })
	denied := failure(403, metav1.StatusReasonForbidden, "not for you", "")
	requests := []string{"list goops", "watch goops", "list pods", "watch pods"}
	for _, request := range requests {
		f.rejects(request, denied)
	}
	f.server.CloseClientConnections()
	eventually(t, "a denial", func() bool {
		return strings.Contains(p.err.String(), "watching the Goop fails") && strings.Contains(p.err.String(), "watching the pods")
	})
	for _, request := range requests {
		f.permits(request)
	}
	f.ends(f.name(), "n1", 0, "hello\n", 0)
	f.end(f.name(), 1)
	g.Expect(p.end()).To(Equal(0))
	g.Expect(p.out.String()).To(Equal("n1: hello\n"))
}
