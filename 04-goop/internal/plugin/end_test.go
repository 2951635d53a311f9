package plugin

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noLeader = failure(500, metav1.StatusReasonInternalError, "etcd has no leader", "x")

// A deletion that fails with a transient error is retried.
func TestRunDeletesAgainWhatWasNotDeleted(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("delete goops", noLeader)
	f.operator(func(goop string) { f.worker(goop, "n1", 0, hangs) })
	p := f.start("run", "--timeout", "3s", "--", "sleep")
	eventually(t, "the deletion fails", func() bool { return f.count("delete goops") > 1 })
	f.permits("delete goops")
	g.Expect(p.end()).To(Equal(124))
	g.Expect(p.err.String()).To(Equal("goop: ending the Goop " + f.name() + ": etcd has no leader; it is tried again\n" +
		"goop: timed out after 3s; not finished: n1; the Goop " + f.name() + " is deleted, which ends its workers\n"))
	g.Expect(f.all()).To(BeEmpty())
}

func TestRunSaysHowToDeleteWhatItCouldNot(t *testing.T) {
	defer func(before time.Duration) { endingWithin = before }(endingWithin)
	endingWithin = time.Second
	g, f := NewWithT(t), newFake(t)
	f.rejects("delete goops", noLeader)
	f.operator(func(goop string) { f.end(goop, 0) })
	r := f.run("run", "--", "true")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(HaveSuffix("error: ending the Goop " + f.name() + ": etcd has no leader; it may still be there: kubectl goop cancel " +
		f.name() + " -n test --kubeconfig " + f.kubeconfig + "\n"))
	g.Expect(f.count("delete goops")).To(BeNumerically(">", 1))
}

// client-go renews an expired token when a request is rejected, and uses it for the next request.
func TestRunDeletesAgainWithAnotherToken(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("delete goops", failure(401, metav1.StatusReasonUnauthorized, "the token has expired", "x"))
	f.operator(func(goop string) {
		f.end(goop, 0)
		eventually(t, "the deletion fails", func() bool { return f.count("delete goops") > 0 })
		f.permits("delete goops")
	})
	r := f.run("run", "--", "true")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(f.all()).To(BeEmpty())
}

// With an expired token that is not renewed, requests are not retried for a minute.
func TestRunDoesNotInsistOnATokenThatHasExpired(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("delete goops", failure(401, metav1.StatusReasonUnauthorized, "the token has expired", "x"))
	f.operator(func(goop string) { f.end(goop, 0) })
	g.Expect(f.run("run", "--", "true").code).To(Equal(1))
	g.Expect(f.count("delete goops")).To(Equal(maxTries))
}

// A rejected request is not retried.
func TestRunDoesNotInsistOnADeletion(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("delete goops", failure(403, metav1.StatusReasonForbidden, "you may not delete", "x"))
	f.operator(func(goop string) { f.end(goop, 0) })
	g.Expect(f.run("run", "--", "true").code).To(Equal(1))
	g.Expect(f.count("delete goops")).To(Equal(1))
}

// The output is still being read, but there is no work to suspend.
func TestRunSuspendsNothingThatHasEnded(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		f.worker(goop, "n1", 0, hangs)
		f.end(goop, 1)
	})
	p := f.start("run", "--keep", "--", "true")
	eventually(t, "its end", func() bool { return p.out.String() != "" && f.all()[f.name()].Ended() })
	p.signal(syscall.SIGTERM)
	g.Expect(p.end()).To(Equal(143))
	g.Expect(p.err.String()).NotTo(ContainSubstring("suspended"))
	g.Expect(f.all()[f.name()].Spec.Suspend).To(BeFalse())
}

// The first lookup of the Goop also counts for the time-out.
func TestWaitTimesOutWithoutAResponse(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	f.slow.delay(http.MethodGet, func() { <-forever })
	r := f.run("wait", "hello", "--timeout", "300ms")
	g.Expect(r.code).To(Equal(124))
	g.Expect(r.err).To(HavePrefix("goop: timed out after 300ms: "))
}
