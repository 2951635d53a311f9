package foo

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	testclock "k8s.io/utils/clock/testing"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

var quota = &Failure{Reason: v1alpha1.ReasonApplyFailed, Message: "exceeded quota"}

func newAttempts(maxRetries int) (*Attempts, *testclock.FakePassiveClock) {
	clock := testclock.NewFakePassiveClock(start.Time)
	return NewAttempts(maxRetries, clock), clock
}

func TestAttemptsAreExhaustedAfterTheLastRetry(t *testing.T) {
	t.Parallel()
	for _, maxRetries := range []int{0, 1, 15} {
		g := NewWithT(t)
		attempts, clock := newAttempts(maxRetries)
		f, tries := aFoo(), 0
		for attempts.Of(f).Due() {
			tries++
			g.Expect(tries).To(BeNumerically("<=", maxRetries+1))
			clock.SetTime(clock.Now().Add(attempts.NoteRejected(f, quota).Wait))
		}
		g.Expect(tries).To(Equal(maxRetries+1), "the first and %d more", maxRetries)
		g.Expect(attempts.Of(f)).To(Equal(Retry{Failure: quota, Exhausted: true}))
		clock.SetTime(clock.Now().Add(time.Hour))
		g.Expect(attempts.Of(f).Due()).To(BeFalse())
	}
}

func TestAttemptsWaitLongerEachTime(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	attempts, _ := newAttempts(100)
	f, before := aFoo(), time.Duration(0)
	for range 100 {
		wait := attempts.NoteRejected(f, quota).Wait
		g.Expect(wait).To(Or(Equal(2*before), Equal(FirstRetry), Equal(LongestRetry)))
		g.Expect(wait).To(BeNumerically(">=", before))
		before = wait
	}
	g.Expect(before).To(Equal(LongestRetry))
}

// A reconciliation that an event triggers is not a try.
func TestTryIsNotDueBeforeItsTime(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	attempts, clock := newAttempts(3)
	f := aFoo()
	g.Expect(attempts.Of(f)).To(Equal(Retry{}))
	wait := attempts.NoteRejected(f, quota).Wait
	clock.SetTime(clock.Now().Add(wait - 1))
	g.Expect(attempts.Of(f)).To(Equal(Retry{Failure: quota, Wait: 1}))
	g.Expect(attempts.Of(f).Due()).To(BeFalse())
	clock.SetTime(clock.Now().Add(1))
	g.Expect(attempts.Of(f)).To(Equal(Retry{Failure: quota}), "due, and the last rejection is still known")
	g.Expect(attempts.Of(f).Due()).To(BeTrue())
}

// steppingClock advances by a minute with each reading, as if the process had been paused.
type steppingClock struct{ *testclock.FakePassiveClock }

func (c steppingClock) Now() time.Time {
	now := c.FakePassiveClock.Now()
	c.SetTime(now.Add(time.Minute))
	return now
}

// A wait of 0 means that an event triggers the next try, and no event would.
func TestEachRejectionIsFollowedByAWait(t *testing.T) {
	t.Parallel()
	attempts := NewAttempts(3, steppingClock{testclock.NewFakePassiveClock(start.Time)})
	NewWithT(t).Expect(attempts.NoteRejected(aFoo(), quota).Wait).To(Equal(FirstRetry))
}

func TestAttemptsStartAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Attempts, *v1alpha1.Foo){
		"with another spec":          func(_ *Attempts, f *v1alpha1.Foo) { f.Generation++ },
		"with another Foo":           func(_ *Attempts, f *v1alpha1.Foo) { f.UID = "uid-2" },
		"after a try that succeeded": func(a *Attempts, f *v1alpha1.Foo) { a.Forget(key(f)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			attempts, _ := newAttempts(0)
			f := aFoo()
			attempts.NoteRejected(f, quota)
			g.Expect(attempts.Of(f).Exhausted).To(BeTrue())
			change(attempts, f)
			g.Expect(attempts.Of(f)).To(Equal(Retry{}))
			g.Expect(attempts.known).To(BeEmpty(), "what is known of the old one is dropped")
		})
	}
}

// A restart loses the count. The condition says that it was exhausted.
func TestStalledFooIsNotTriedAfterARestart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	f := aFoo()
	f.Status = Status(f, Observation{Failure: quota, Exhausted: true}, start)
	attempts, _ := newAttempts(15)
	g.Expect(attempts.Of(f)).To(Equal(Retry{Failure: quota, Exhausted: true}))
	f.Generation++
	g.Expect(attempts.Of(f)).To(Equal(Retry{}), "another spec is tried")
}

// Another client has removed the condition Ready, and with it the message of the rejection: another try reports it again.
func TestStalledFooWithoutReadyIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := aFoo()
	f.Status = Status(f, Observation{Failure: quota, Exhausted: true}, start)
	apimeta.RemoveStatusCondition(&f.Status.Conditions, v1alpha1.ConditionReady)
	attempts, _ := newAttempts(15)
	NewWithT(t).Expect(attempts.Of(f)).To(Equal(Retry{}))
}
