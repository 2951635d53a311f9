package plugin

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

func soonOver(t *testing.T) {
	t.Helper()
	before := stragglers
	stragglers = time.Second
	t.Cleanup(func() { stragglers = before })
}

// An informer whose watch fails pauses for up to half a minute before it lists again. The work may end meanwhile.
func TestPodsThatAreNotWatchedWhenTheWorkEnds(t *testing.T) {
	soonOver(t)
	for name, trouble := range map[string]metav1.Status{
		"not permitted": failure(403, metav1.StatusReasonForbidden, "you may not watch pods", ""),
		"broken":        failure(500, metav1.StatusReasonInternalError, "etcd does not respond", ""),
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			f.rejects("watch pods", trouble)
			f.operator(func(goop string) {
				f.waits(goop, v1alpha1.ReasonWorking, "")
				eventually(t, "a pause", func() bool { return f.count("list pods") > 1 })
				f.ends(goop, "n1", 0, "hello\n", 0)
				f.end(goop, 1)
			})
			r := f.run("run", "--", "work")
			g.Expect(r.code).To(Equal(0))
			g.Expect(r.out).To(Equal("n1: hello\n"))
			g.Expect(r.err).To(ContainSubstring("watching the pods of the Goop fails, and is tried again"))
		})
	}
}

// A list that fails as well is retried.
func TestPodsThatAreNotListedWhenTheWorkEnds(t *testing.T) {
	soonOver(t)
	g, f := NewWithT(t), newFake(t)
	broken := failure(500, metav1.StatusReasonInternalError, "etcd does not respond", "")
	f.rejects("watch pods", broken)
	f.operator(func(goop string) {
		f.waits(goop, v1alpha1.ReasonWorking, "")
		eventually(t, "a pause", func() bool { return f.count("list pods") > 1 })
		f.rejects("list pods", broken)
		f.ends(goop, "n1", 0, "hello\n", 0)
		f.end(goop, 1)
		<-time.After(stragglers) // a third of the time in which a list has to succeed
		f.permits("list pods")
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: hello\n"))
}

// A worker whose log was followed when the watch broke off is not given up. It has ended, and only a list shows that.
func TestAFollowedWorkerWhosePodIsNotWatchedWhenItEnds(t *testing.T) {
	soonOver(t)
	stragglers *= 2 // more than a tick
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) {
		pod := f.worker(goop, "n1", 0, text("hello\n"))
		eventually(t, "it is followed", func() bool { return f.count("get logs") > 0 })
		broken := failure(500, metav1.StatusReasonInternalError, "etcd does not respond", "")
		f.rejects("watch pods", broken)
		f.server.CloseClientConnections()
		lists := f.count("list pods")
		eventually(t, "a pause", func() bool { return f.count("list pods") > lists+2 })
		f.finish(pod, worker.Record{Tries: 1, Output: "hello\n"})
		f.end(goop, 1)
	})
	r := f.run("run", "--", "work")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n1: hello\n"))
	g.Expect(r.err).NotTo(ContainSubstring("n1"))
}

// The informer's goroutine reports the error of a watch, and another one the events of the list before it. If these arrive last,
// the informer pauses all the same.
func TestEventsOfAListAfterTheErrorOfItsWatch(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Unix(1000, 0))
	a := &app{console: newConsole(genericiooptions.NewTestIOStreamsDiscard()), clock: clock}
	s := newSession(a, nil, &v1alpha1.Goop{Status: v1alpha1.GoopStatus{Succeeded: 1}})
	s.sink, s.toTheEnd, s.endedAt, s.pool.active = &lineSink{}, true, clock.Now(), 1
	clock.Step(stragglers)
	g.Expect(s.needsRelist()).To(BeFalse(), "the watch works, and an output is being read")
	s.onPod(change[*corev1.Pod]{err: errors.New("etcd does not respond")})
	s.onPod(change[*corev1.Pod]{object: &corev1.Pod{}})
	clock.Step(stragglers)
	g.Expect(s.needsRelist()).To(BeTrue())
	clock.Step(maxPause)
	g.Expect(s.needsRelist()).To(BeFalse(), "the informer has watched again without an error")
}

// The permission to list pods is required, but not the permission to watch them.
func TestLogsWithoutAPermissionToWatchPods(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.rejects("watch pods", failure(403, metav1.StatusReasonForbidden, "you may not watch pods", ""))
	f.goop("hello", "true")
	f.ends("hello", "n1", 0, "hello\n", 0)
	g.Expect(f.run("logs", "hello").out).To(Equal("n1: hello\n"))
}
