package plugin

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A response that is lost is no reason to lose the Goop, nor to run the command twice.
func TestRunFindsTheGoopWhoseCreationGotNoResponse(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.breaksOff(1, true)
	f.operator(func(goop string) {
		f.ends(goop, "n1", 0, "once\n", 0)
		f.over(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(r.out).To(Equal("n1: once\n"))
	g.Expect(f.name()).To(MatchRegexp("^run-[a-z2-7]{10}$"))
	g.Expect(f.count("create goops")).To(Equal(1))
	g.Expect(f.all()).To(BeEmpty())
}

// The quota counts the Goop of the first request, and rejects the second: the first is what there is.
func TestRunFindsTheGoopThoughTheServerRejectsASecond(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.breaksOff(1, true)
	f.refuses("get goops", failure(500, metav1.StatusReasonInternalError, "etcd has no leader", "x"))
	f.operator(func(goop string) {
		f.over(goop, 0)
		f.refuses("create goops", failure(403, metav1.StatusReasonForbidden, "exceeded quota", "x"))
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
	f.operator(func(goop string) { f.over(goop, 0) })
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(f.count("create goops")).To(Equal(3))
	g.Expect(f.changes()).To(Equal(3), "it was created, worked and deleted")
}

// A webhook that is down, say: after some tries the server's words are the result.
func TestRunEndsWhereTheGoopIsNotCreated(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.refuses("create goops", failure(500, metav1.StatusReasonInternalError, "the webhook is down", "x"))
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{1, "", "error: creating the Goop: the webhook is down\n"}))
	g.Expect(f.count("create goops")).To(Equal(maxTries))
}

func TestRunSaysThatTheGoopMayHaveBeenCreated(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.breaksOff(maxTries, true)
	f.refuses("get goops", failure(500, metav1.StatusReasonInternalError, "etcd has no leader", "x"))
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(HavePrefix("goop: the Goop " + f.name() + " may have been created: kubectl goop cancel " + f.name() + " -n test "))
	g.Expect(r.err).To(MatchRegexp("\nerror: creating the Goop: .*EOF\n$"))
	g.Expect(f.all()).To(HaveLen(1))
}

// What was rejected, or never sent, is not tried again: the user is to see why at once.
func TestRunDoesNotTryAgainWhatCannotHaveTakenEffect(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.refuses("create goops", failure(422, metav1.StatusReasonInvalid, "spec.jobCount: Invalid value: 9", "x"))
	r := f.run("run", "--", "work")
	g.Expect(r).To(Equal(ran{1, "", "error: creating the Goop: spec.jobCount: Invalid value: 9\n"}))
	g.Expect(f.count("create goops") + f.count("get goops")).To(Equal(1))

	f.server.Close()
	r = f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(MatchRegexp("^error: creating the Goop: .*connection refused\n$"))
}
