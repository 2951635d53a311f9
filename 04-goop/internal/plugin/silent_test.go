package plugin

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// silent serves a log whose stream brings nothing and does not end.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func soonSilent(t *testing.T) {
	t.Helper()
	before := maxSilence
	// On a busy machine a stream may need a while for its first bytes.
	maxSilence = time.Second
	t.Cleanup(func() { maxSilence = before })
}

// A connection that is lost without an error does not delay the end of the program after the end of the worker.
func TestStreamsOfEndedWorkersThatDoNotEnd(t *testing.T) {
	soonSilent(t)
	g, f := NewWithT(t), newFake(t)
	opened := 0
	f.operator(func(goop string) {
		f.finish(f.worker(goop, "n1", 0, hangs), worker.Record{Tries: 1, Output: "begun\n"})
		f.finish(f.worker(goop, "n2", 0, silent), worker.Record{Tries: 1, Output: "from the record\n"})
		n3 := f.worker(goop, "n3", 0, func(w http.ResponseWriter, r *http.Request) {
			if opened++; opened == 1 {
				hangs(w, r)
				return
			}
			_, _ = io.WriteString(w, "begun\nand ended\n")
		})
		eventually(t, "n3 is followed", func() bool { return f.count("get logs") >= 3 })
		f.finish(n3, worker.Record{Tries: 1, Output: "begun\nand ended\n"})
		f.end(goop, 3)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: begun", "n2: from the record", "n3: begun", "n3: and ended", ""))
	g.Expect(strings.Split(r.err, "\n")).To(ConsistOf(
		"goop: n1: the end of its output may be missing: its log stream brings nothing more and does not end",
		"goop: n2: its output is not available: its log stream brings nothing more and does not end; shown is the end of it, at most 2 KiB, from the record",
		""))
}

// Without --follow a log has an end, whether its worker has ended or not.
func TestStreamsThatAreNotFollowedAndDoNotEnd(t *testing.T) {
	soonSilent(t)
	g, f := NewWithT(t), newFake(t)
	f.goop("hello", "true")
	f.waits("hello", v1alpha1.ReasonWorking, "")
	f.worker("hello", "n1", 0, hangs)
	r := f.run("logs", "hello")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.out).To(Equal("n1: begun\n"))
	g.Expect(r.err).To(Equal("goop: n1: the end of its output may be missing: its log stream brings nothing more and does not end\n"))
}

// A running worker may be silent for any time.
func TestARunningWorkerMayBeSilent(t *testing.T) {
	soonSilent(t)
	g, f := NewWithT(t), newFake(t)
	ended, followed := make(chan struct{}), 0
	f.operator(func(goop string) {
		pod := f.worker(goop, "n1", 0, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("follow") != "true" {
				_, _ = io.WriteString(w, "begun\nended\n")
				return
			}
			followed++
			_, _ = io.WriteString(w, "begun\n")
			w.(http.Flusher).Flush()
			<-time.After(maxSilence + 1500*time.Millisecond) // longer than a tick after it
			_, _ = io.WriteString(w, "ended\n")
			close(ended)
		})
		<-ended
		f.finish(pod, worker.Record{Tries: 1})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{0, "n1: begun\nn1: ended\n", ""}))
	g.Expect(followed).To(Equal(1))
}

// The time in which the output waits to be written does not count.
func TestSilenceIsTheStreamsAlone(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Unix(1000, 0))
	s := &silence{clock: clock}
	stream := &awaited{stream: iotest.OneByteReader(strings.NewReader("x")), silence: s}
	g.Expect(s.lasts()).To(BeZero())
	s.begin()
	clock.Step(time.Minute)
	g.Expect(s.lasts()).To(Equal(time.Minute))
	_, err := stream.Read(make([]byte, 1))
	g.Expect(err).NotTo(HaveOccurred())
	clock.Step(time.Minute)
	g.Expect(s.lasts()).To(BeZero())
}
