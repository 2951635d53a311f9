package plugin

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// operator simulates the work of a Goop when it is created.
func (f *fake) operator(work func(goop string)) {
	f.creates(func(goop *v1alpha1.Goop) { work(goop.Name) })
}

// ends adds a worker that has ended.
func (f *fake) ends(goop, node string, round int, output string, code int32) {
	f.finish(f.worker(goop, node, round, text(output)), worker.Record{ExitCode: code, Tries: 1, Output: output})
}

func TestRunStreamsLinesAndRemovesTheGoop(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "Linux\nno end", 0)
		f.ends(goop, "n2", 0, "", 0)
		f.end(goop, 2)
	})
	r := f.run("run", "--", "uname")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.out).To(Equal("n1: Linux\nn1: no end\n"))
	g.Expect(r.err).To(BeEmpty())
	g.Expect(f.all()).To(BeEmpty())
}

func TestRunCreatesWhatTheFlagsDescribe(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	var created *v1alpha1.Goop
	f.creates(func(goop *v1alpha1.Goop) {
		created = goop
		f.end(goop.Name, 0)
	})
	r := f.run("run", "--nodes", "a=b,c=d", "--count", "3", "--image", "img", "--timeout", "90s", "--host-root", "ro",
		"--retries", "2", "--tolerate-all", "--", "ls", "-l", "--", "--help")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(created.Name).To(HavePrefix("run-"))
	g.Expect(json.Marshal(created.Spec)).To(MatchJSON(`{"cmd":["ls","-l","--","--help"],"jobCount":3,"image":"img",
		"nodeSelector":{"a":"b","c":"d"},"tolerations":[{"operator":"Exists"}],"retries":2,"activeDeadlineSeconds":105,"ttlSecondsAfterFinished":3600,
		"host":{"root":"ReadOnly"}}`))
}

func TestRunEndsAsTheWorkersDid(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "a\n", 3)
		f.ends(goop, "n2", 0, "b\n", 7)
		f.ends(goop, "n3", 0, "c\n", 0)
		f.end(goop, 1, v1alpha1.Failure{Node: "n1", ExitCode: 3}, v1alpha1.Failure{Node: "n2", ExitCode: 7})
	})
	r := f.run("run", "--", "false")
	g.Expect(r.code).To(Equal(7))
	g.Expect(strings.Split(strings.TrimSpace(r.out), "\n")).To(ConsistOf("n1: a", "n2: b", "n3: c"))
	g.Expect(r.err).To(Equal("goop: WorkersFailed: 2 of 3 workers failed; exit code 3: n1; exit code 7: n2\n"))
}

func TestRunNamesTheRoundWhereNodesHaveSeveralWorkers(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		first := f.worker(goop, "n1", 0, text("zero\n"))
		f.ends(goop, "n1", 1, "one\n", 0)
		f.finish(first, worker.Record{Tries: 1})
		f.end(goop, 2)
	})
	r := f.run("run", "--count", "2", "--group", "--", "uname")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.out).To(Equal("---------------\nn1/0\n---------------\nzero\n---------------\nn1/1\n---------------\none\n"))
}

func TestRunShowsOutputAtOnce(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	written, more := make(chan string), make(chan struct{})
	f.operator(func(goop string) {
		written <- f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "first\nsec")
			w.(http.Flusher).Flush()
			<-more
			_, _ = io.WriteString(w, "ond\n")
		})
	})
	p := f.start("run", "--", "work")
	pod := <-written
	eventually(t, "the first line", func() bool { return p.out.String() == "n1: first\n" })
	close(more)
	f.finish(pod, worker.Record{Tries: 1})
	f.end(f.name(), 1)
	g.Expect(p.end()).To(Equal(0), p.err.String())
	g.Expect(p.out.String()).To(Equal("n1: first\nn1: second\n"))
	g.Expect(f.count("get logs")).To(Equal(2), "an end of the stream is no proof that it was whole")
}

func TestRunGoesOnWithAStreamThatBrokeOff(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			opened++
			if opened == 1 {
				_, _ = io.WriteString(w, "one\ntw") // and ends, for example by a proxy
				return
			}
			_, _ = io.WriteString(w, "one\ntwo\nthree\n")
			f.finish(goop+"-0-n1", worker.Record{Tries: 1})
			f.end(goop, 1)
		})
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.out).To(Equal("n1: one\nn1: two\nn1: three\n"))
	g.Expect(r.err).To(BeEmpty())
}

func TestRunFallsBackToTheRecord(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, nil), worker.Record{Tries: 1, Output: "last words"})
		pod := f.worker(goop, "n2", 0, nil)
		f.finish(pod, worker.Record{ExitCode: 4, Tries: 1, Output: "never seen"})
		f.removePod(pod)
		f.end(goop, 1, v1alpha1.Failure{Node: "n2", ExitCode: 4, Output: "from the status"})
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(4))
	g.Expect(r.out).To(ContainSubstring("n1: last words\n"))
	g.Expect(r.out).To(Or(ContainSubstring("n2: from the status\n"), ContainSubstring("n2: never seen\n")))
	g.Expect(r.err).To(ContainSubstring("goop: n1: its output is not available: pods not found; shown is the end of it"))
	g.Expect(r.err).To(MatchRegexp("goop: n2: its output is not available: (its pod was deleted|no pod of it was found); shown is the end of it"))
}

func TestRunSaysThatLogsAreForbidden(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("get logs", failure(403, metav1.StatusReasonForbidden, "logs are not for you", "x"))
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, nil), worker.Record{Tries: 1, Output: "last words"})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: last words\n"))
	g.Expect(r.err).To(ContainSubstring("logs are not for you"))
}

func TestRunTimesOut(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "done\n", 0)
		f.worker(goop, "n2", 0, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "half a line")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
	})
	r := f.run("run", "--timeout", "3s", "--", "sleep")
	g.Expect(r.code).To(Equal(124))
	g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: done", "n2: half a line", ""))
	g.Expect(r.err).To(Equal("goop: timed out after 3s; not finished: n2; the Goop " + f.name() + " is deleted, which ends its workers\n"))
	g.Expect(f.all()).To(BeEmpty())
}

func TestRunKeepsTheGoop(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) { f.end(goop, 0) })
	r := f.run("run", "--keep", "--", "true")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.err).To(Equal("goop: the Goop " + f.name() + " is created and will be kept: kubectl goop logs " + f.name() + " -n test --kubeconfig " + f.kubeconfig + "\n"))
	g.Expect(f.all()).To(HaveKey(f.name()))

	f.operator(func(string) {})
	r = f.run("run", "--keep", "--timeout", "3s", "--", "true")
	g.Expect(r.code).To(Equal(124), r.err)
	g.Expect(r.err).To(ContainSubstring("is suspended, which ends its workers, and kept"))
	suspended := 0
	for _, goop := range f.all() {
		if goop.Spec.Suspend {
			suspended++
		}
	}
	g.Expect(suspended).To(Equal(1))
}

func TestRunSaysWhatTheWorkWaitsFor(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.waits(goop, v1alpha1.ReasonNoEligibleNodes, "no node has the labels")
		f.waits(goop, v1alpha1.ReasonNoEligibleNodes, "no node has the labels")
		f.waits(goop, v1alpha1.ReasonImageNotPulled, "no such image: img")
	})
	program := f.begin("run", "--", "true")
	eventually(t, "the last notice", func() bool { return strings.Contains(program.err.String(), "ImageNotPulled") })
	f.ends(f.name(), "n1", 0, "at last\n", 0)
	f.end(f.name(), 1)
	r := program.end(t)
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.err).To(HaveSuffix("goop: ImageNotPulled: no such image: img\n"))
	g.Expect(strings.Count(r.err, "goop: NoEligibleNodes: no node has the labels\n")).To(BeNumerically("<=", 1))
	g.Expect(r.out).To(Equal("n1: at last\n"))
}

func TestRunEndsWhenItIsRejected(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.waits(goop, v1alpha1.ReasonHostAccessNotAllowed, "the operator was started without --allow-host-access")
	})
	r := f.run("run", "--host-root", "rw", "--", "true")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(HavePrefix("goop: rejected: the operator was started without --allow-host-access"))
	g.Expect(f.all()).To(BeEmpty())
}

func TestRunEndsWhenTheGoopIsDeleted(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(f.remove)
	r := f.run("run", "--", "true")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(Equal("goop: the Goop " + f.name() + " was deleted before it had ended\n"))
}

func TestRunWithErrorsOfTheServer(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("create goops", failure(404, metav1.StatusReasonNotFound, "the server could not find the requested resource", ""))
	r := f.run("run", "--", "true")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(ContainSubstring("the cluster does not know Goops: the operator is not deployed there"))

	f.rejects("create goops", failure(422, metav1.StatusReasonInvalid, `spec.jobCount: Invalid value: 9`, "x"))
	r = f.run("run", "--", "true")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(Equal("error: creating the Goop: spec.jobCount: Invalid value: 9\n"))

	f.permits("create goops")
	f.rejects("delete goops", failure(403, metav1.StatusReasonForbidden, "you may not delete", "x"))
	f.operator(func(goop string) { f.end(goop, 0) })
	r = f.run("run", "--", "true")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(ContainSubstring("you may not delete; it may still be there: kubectl goop cancel run-"))
}

// The longest time of the flag exceeds the limit of the API. Then there is no deadline.
func TestTheLongestTimeout(t *testing.T) {
	g := NewWithT(t)
	goop, err := (&runFlags{timeout: math.MaxInt64}).goop([]string{"true"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(goop.Spec.ActiveDeadlineSeconds).To(BeNil())
}
