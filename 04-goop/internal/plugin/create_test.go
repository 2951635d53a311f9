package plugin

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// After a lost response, run finds the Goop, and does not run the command twice.
func TestRunFindsTheGoopWhoseCreationGotNoResponse(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.breaksOff(1, true)
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "once\n", 0)
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.out).To(Equal("n1: once\n"))
	g.Expect(f.name()).To(MatchRegexp("^run-[a-z2-7]{10}$"))
	g.Expect(f.count("create goops")).To(Equal(1))
	g.Expect(f.all()).To(BeEmpty())
}

// The quota counts the Goop of the first request, and rejects the second request. The first Goop is used.
func TestRunFindsTheGoopThoughTheServerRejectsASecond(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.breaksOff(1, true)
	f.rejects("get goops", failure(500, metav1.StatusReasonInternalError, "etcd has no leader", "x"))
	f.operator(func(goop string) {
		f.end(goop, 0)
		f.rejects("create goops", failure(403, metav1.StatusReasonForbidden, "exceeded quota", "x"))
		eventually(t, "it is looked up in vain", func() bool { return f.count("get goops") > 0 })
		f.permits("get goops")
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(f.all()).To(BeEmpty())
}

func TestRunCreatesAgainWhatWasNotCreated(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.breaksOff(2, false)
	f.operator(func(goop string) { f.end(goop, 0) })
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(f.count("create goops")).To(Equal(3))
	g.Expect(f.changes()).To(Equal(3), "it was created, worked and deleted")
}

// If, for example, a webhook is down, the server's error is the result after some tries.
func TestRunEndsWhereTheGoopIsNotCreated(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("create goops", failure(500, metav1.StatusReasonInternalError, "the webhook is down", "x"))
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{1, "", "error: creating the Goop: the webhook is down\n"}))
	g.Expect(f.count("create goops")).To(Equal(maxTries))
}

func TestRunSaysThatTheGoopMayHaveBeenCreated(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.breaksOff(maxTries, true)
	f.rejects("get goops", failure(500, metav1.StatusReasonInternalError, "etcd has no leader", "x"))
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(HavePrefix("goop: the Goop " + f.name() + " may have been created: kubectl goop cancel " + f.name() + " -n test "))
	g.Expect(r.err).To(MatchRegexp("\nerror: creating the Goop: .*EOF\n$"))
	g.Expect(f.all()).To(HaveLen(1))
}

// Requests that were rejected or never sent are not retried, so that the user sees the reason at once.
func TestRunDoesNotTryAgainWhatCannotHaveTakenEffect(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("create goops", failure(422, metav1.StatusReasonInvalid, "spec.jobCount: Invalid value: 9", "x"))
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{1, "", "error: creating the Goop: spec.jobCount: Invalid value: 9\n"}))
	g.Expect(f.count("create goops") + f.count("get goops")).To(Equal(1))

	f.server.Close()
	r = f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(MatchRegexp("^error: creating the Goop: .*connection refused\n$"))
}

// After a signal or --timeout that comes before the command runs, the Goop is not created any more.
func TestRunCreatesNothingAfterItsEnd(t *testing.T) {
	for name, end := range map[string]struct {
		flags []string
		send  os.Signal
		code  int
	}{
		"Ctrl-C":    {nil, os.Interrupt, 130},
		"--timeout": {[]string{"--timeout", "2s"}, nil, 124},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			f.breaksOff(1, false)
			ended := make(chan struct{})
			f.slow.delay("POST", func() { <-ended })
			p := f.start(append(append([]string{"run"}, end.flags...), "--", "work")...)
			eventually(t, "the request", func() bool { return f.slow.began.Load() })
			if end.send != nil {
				p.signal(end.send)
			}
			<-time.After(3 * time.Second) // until its end has been noticed: nothing reports that
			close(ended)
			g.Expect(p.end()).To(Equal(end.code), p.err.String())
			g.Expect(f.changes()).To(BeZero(), "nothing was created")
			g.Expect(f.count("create goops")).To(Equal(1))
		})
	}
}

func TestRunCreatesNothingWhoseTimeIsOverBefore(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	r := f.run("run", "--timeout", "1ns", "--", "work")
	g.Expect(r.code).To(Equal(124), r.err)
	g.Expect(r.err).To(Equal("goop: timed out after 1ns; no Goop was created\n"))
	g.Expect(f.count("create goops")).To(BeZero())
}

// If the lookup fails too, only the lookup is retried.
func TestRunLooksForWhatItMayHaveCreatedBeforeItsEnd(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.breaksOff(1, false)
	f.rejects("get goops", failure(500, metav1.StatusReasonInternalError, "etcd has no leader", "x"))
	p := f.start("run", "--", "work")
	eventually(t, "the lookup", func() bool { return f.count("get goops") > 0 })
	p.signal(os.Interrupt)
	eventually(t, "another lookup", func() bool { return f.count("get goops") > 2 })
	f.permits("get goops")
	g.Expect(p.end()).To(Equal(130), p.err.String())
	g.Expect(f.changes()).To(BeZero(), "nothing was created")
}
