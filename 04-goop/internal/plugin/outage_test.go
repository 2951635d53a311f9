package plugin

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/internal/worker"
)

// While the API server does not respond, failed requests for a log do not count as tries.
func TestLogsThatAreReadAfterAnOutage(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	var back atomic.Bool
	var opened atomic.Int32
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(w http.ResponseWriter, _ *http.Request) {
			opened.Add(1)
			if !back.Load() {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, "all of it\n")
		}), worker.Record{Tries: 1, Output: "record"})
		f.end(goop, 1)
		eventually(t, "more tries than a log has", func() bool { return opened.Load() > maxTries })
		back.Store(true)
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: all of it\n", ""}))
}

// An outage does not delay the end of the command without limit.
func TestLogsThatAreGivenUpInAnOutage(t *testing.T) {
	defer func(before time.Duration) { maxOutage = before }(maxOutage)
	maxOutage = time.Second
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), worker.Record{Tries: 1, Output: "record"})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: record\n"))
	g.Expect(r.err).To(And(HavePrefix("goop: n1: its output is not available: "), ContainSubstring("EOF")))
}

var deniedLog = failure(403, metav1.StatusReasonForbidden, "logs are not for you", "")

// An authorizer that does not respond denies a request that it permitted before, and permits it later.
func TestALogThatIsDeniedForAMoment(t *testing.T) {
	for name, ended := range map[string]bool{"of a worker that goes on": false, "of one that has ended": true} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			opened := 0
			f.operator(func(goop string) {
				pod := f.worker(goop, "n1", 0, func(w http.ResponseWriter, _ *http.Request) {
					if opened++; opened == 1 {
						respond(w, 403, deniedLog)
						return
					}
					_, _ = io.WriteString(w, "all of it\n")
				})
				if !ended {
					eventually(t, "a denial", func() bool { return f.count("get logs") > 0 })
					<-time.After(100 * time.Millisecond)
				}
				f.finish(pod, worker.Record{Tries: 1, Output: "all of it\n"})
				f.end(goop, 1)
			})
			r := f.run("run", "--", "work")
			g.Expect(r).To(Equal(ran{0, "n1: all of it\n", ""}))
		})
	}
}

// Without the permission to read logs the output comes from the record, also for workers that were observed before they
// ended.
func TestRunWithoutAPermissionToReadLogs(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("get logs", deniedLog)
	f.operator(func(goop string) {
		pod := f.worker(goop, "n1", 0, hangs)
		eventually(t, "a denial", func() bool { return f.count("get logs") > 0 })
		<-time.After(100 * time.Millisecond)
		f.finish(pod, worker.Record{Tries: 1, Output: "record\n"})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: record\n"))
	g.Expect(strings.Count(r.err, "its output is not available: logs are not for you; shown is the end")).To(Equal(1), r.err)
}

// If the pod of a worker is deleted before its end was observed, the end of its output is missing.
func TestAWorkerWhosePodIsGoneBeforeItsEndIsCounted(t *testing.T) {
	soonOver(t)
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		pod := f.worker(goop, "n1", 0, text("begun\n"))
		eventually(t, "it is read", func() bool { return f.count("get logs") > 0 })
		f.removePod(pod)
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: begun\n"))
	g.Expect(r.err).To(ContainSubstring("the output of 1 of 1 workers is not available: no pods of them were found\n"))
}

// A reader that pauses, in less say, has its connection broken off again and again. As long as each brings more of the log
// that is no outage.
func TestALogWhoseConnectionsBreakOffForLong(t *testing.T) {
	defer func(before time.Duration) { maxOutage = before }(maxOutage)
	maxOutage = 500 * time.Millisecond
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(w http.ResponseWriter, _ *http.Request) {
			opened++
			_, _ = io.WriteString(w, strings.Repeat("a line\n", opened))
			w.(http.Flusher).Flush()
			if opened < 4 {
				panic(http.ErrAbortHandler)
			}
		}), worker.Record{Tries: 1, Output: strings.Repeat("a line\n", 4)})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, strings.Repeat("n1: a line\n", 4), ""}))
}

// The time is that of the work. Who reads its output may take longer.
func TestATimeoutEndsNothingThatIsOver(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "one\n")
			w.(http.Flusher).Flush()
			<-time.After(4 * time.Second)
			_, _ = io.WriteString(w, "two\n")
		}), worker.Record{Tries: 1, Output: "one\ntwo\n"})
		f.end(goop, 1)
	})
	r := f.run("run", "--timeout", "3s", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: one\nn1: two\n", ""}))
}
