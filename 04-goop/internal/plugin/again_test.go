package plugin

import (
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/internal/worker"
)

// reboot simulates a restart of a pod's node: the worker has another container, and the end of the earlier one is in the
// last termination state.
func (f *fake) reboot(pod string) {
	f.alter(pod, func(changed *corev1.Pod) {
		work := &changed.Status.InitContainerStatuses[1]
		work.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, ContainerID: work.ContainerID}
	})
	f.restart(pod)
}

// If the node of an ended worker has restarted, the log is that of the container that did the work.
func TestAWorkerWhoseNodeRestartedAfterItsEnd(t *testing.T) {
	for name, state := range map[string]corev1.ContainerState{
		"it waits":             {Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
		"it repeats":           {Running: &corev1.ContainerStateRunning{}},
		"it has been repeated": {Terminated: &corev1.ContainerStateTerminated{Message: `{"exitCode":3,"tries":1,"output":"work\n"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			f.goop("hello", "true")
			pod := f.worker("hello", "n1", 0, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("previous") == "true" {
					_, _ = io.WriteString(w, "work\n")
					return
				}
				linesFrom(1, "goop-worker: this worker has finished, and does not run again\n")(w, r)
			})
			f.alter(pod, func(changed *corev1.Pod) {
				work := &changed.Status.InitContainerStatuses[1]
				work.RestartCount, work.State = 1, state
				work.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
					ContainerID: work.ContainerID, Message: `{"exitCode":3,"tries":1,"output":"work\n"}`,
				}
				work.ContainerID += "again"
			})
			r := f.run("logs", "hello", "-o", "json")
			g.Expect(r.code).To(Equal(0), r.err)
			g.Expect(r.out).To(HavePrefix(`{"type":"worker","node":"n1","round":0,"exitCode":3,"tries":1,"output":"work\n","outputFrom":"log"}` + "\n"))
			g.Expect(r.err).To(BeEmpty())
		})
	}
}

// The kubelet keeps the log of one previous container. The log of another container is not shown instead.
func TestALogThatIsGoneAfterRestarts(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	whole := 0
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("follow") == "true" {
				return // read before the end was observed: the container must not be restarted before that
			}
			if whole++; whole > 1 {
				linesFrom(1, "goop-worker: this worker has finished, and does not run again\n")(w, r)
				return
			}
			f.restart(goop + "-0-n1")
			respond(w, 500, failure(500, metav1.StatusReasonInternalError, "the node does not respond", ""))
		}), worker.Record{Tries: 1, Output: "work\nends\n"})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: work\nn1: ends\n"))
	g.Expect(r.err).To(ContainSubstring("goop: n1: its output is not available: its container was restarted, and its log is lost; shown is"))
}

// The output of two containers is not in one line, and a notice reports that there were two.
func TestHalfALineOfAContainerThatWasCut(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			if f.count("get logs") == 1 {
				_, _ = io.WriteString(w, "half a li")
				f.reboot(goop + "-0-n1")
				return
			}
			_, _ = io.WriteString(w, "whole\n")
			f.finish(goop+"-0-n1", worker.Record{Tries: 2, Output: "whole\n"})
			f.end(goop, 1)
		})
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: half a li\nn1: whole\n", "goop: n1: its container was restarted; what it wrote before that may be missing\n"}))
}

// A container that was killed is not started again at once. Its log is there meanwhile.
func TestLogsOfAContainerThatIsToBeStartedAgain(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.goop("hello", "true")
	f.alter(f.worker("hello", "n1", 0, text("begun\n")), func(changed *corev1.Pod) {
		work := &changed.Status.InitContainerStatuses[1]
		work.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		work.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, ContainerID: work.ContainerID}
	})
	g.Expect(f.run("logs", "hello")).To(Equal(ran{0, "n1: begun\n", ""}))
}
