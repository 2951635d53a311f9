package foo

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

var quota = &Refusal{Reason: v1alpha1.ReasonApplyFailed, Message: "exceeded quota"}

func newAttempts(maxRetries int) (*Attempts, *testclock.FakePassiveClock) {
	clock := testclock.NewFakePassiveClock(start.Time)
	return NewAttempts(maxRetries, clock), clock
}

func TestAttemptsGiveUpAfterTheLastRetry(t *testing.T) {
	t.Parallel()
	for _, maxRetries := range []int{0, 1, 15} {
		g := NewWithT(t)
		attempts, clock := newAttempts(maxRetries)
		f, tries := aFoo(), 0
		for attempts.Of(f).MayTry() {
			tries++
			g.Expect(tries).To(BeNumerically("<=", maxRetries+1))
			clock.SetTime(clock.Now().Add(attempts.Refuse(f, quota).Wait))
		}
		g.Expect(tries).To(Equal(maxRetries+1), "the first and %d more", maxRetries)
		g.Expect(attempts.Of(f)).To(Equal(Verdict{Refused: quota, GaveUp: true}))
		clock.SetTime(clock.Now().Add(time.Hour))
		g.Expect(attempts.Of(f).MayTry()).To(BeFalse())
	}
}

func TestAttemptsWaitLongerEachTime(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	attempts, _ := newAttempts(100)
	f, before := aFoo(), time.Duration(0)
	for range 100 {
		wait := attempts.Refuse(f, quota).Wait
		g.Expect(wait).To(Or(Equal(2*before), Equal(FirstRetry), Equal(LongestRetry)))
		g.Expect(wait).To(BeNumerically(">=", before))
		before = wait
	}
	g.Expect(before).To(Equal(LongestRetry))
}

// A pass that something else woke is no try.
func TestAttemptsAreNotDueBeforeTheirTime(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	attempts, clock := newAttempts(3)
	f := aFoo()
	g.Expect(attempts.Of(f)).To(Equal(Verdict{}))
	wait := attempts.Refuse(f, quota).Wait
	clock.SetTime(clock.Now().Add(wait - 1))
	g.Expect(attempts.Of(f)).To(Equal(Verdict{Refused: quota, Wait: 1}))
	g.Expect(attempts.Of(f).MayTry()).To(BeFalse())
	clock.SetTime(clock.Now().Add(1))
	g.Expect(attempts.Of(f)).To(Equal(Verdict{Refused: quota}), "due, and the last refusal is still known")
	g.Expect(attempts.Of(f).MayTry()).To(BeTrue())
}

// steppingClock passes a minute between two readings, as if the process had been paused there.
type steppingClock struct{ *testclock.FakePassiveClock }

func (c steppingClock) Now() time.Time {
	now := c.FakePassiveClock.Now()
	c.SetTime(now.Add(time.Minute))
	return now
}

// A wait of 0 means that an event will announce the next try, and none would.
func TestRefusalIsAlwaysFollowedByAWait(t *testing.T) {
	t.Parallel()
	attempts := NewAttempts(3, steppingClock{testclock.NewFakePassiveClock(start.Time)})
	NewWithT(t).Expect(attempts.Refuse(aFoo(), quota).Wait).To(Equal(FirstRetry))
}

func TestAttemptsBeginAnew(t *testing.T) {
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
			attempts.Refuse(f, quota)
			g.Expect(attempts.Of(f).GaveUp).To(BeTrue())
			change(attempts, f)
			g.Expect(attempts.Of(f)).To(Equal(Verdict{}))
			g.Expect(attempts.known).To(BeEmpty(), "nothing is kept of what is over")
		})
	}
}

func TestAttemptsAreThoseOfOneFoo(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	attempts, _ := newAttempts(0)
	f, other := aFoo(), aFoo()
	other.Name, other.UID = "other", types.UID("uid-2")
	attempts.Refuse(f, quota)
	g.Expect(attempts.Of(other)).To(Equal(Verdict{}))
}

// A restart loses the count, and the condition tells what it had come to.
func TestAttemptsKnowAStalledFooAfterARestart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	f := aFoo()
	f.Status = Status(f, Facts{Refused: quota, GaveUp: true}, start)
	attempts, _ := newAttempts(15)
	g.Expect(attempts.Of(f)).To(Equal(Verdict{Refused: quota, GaveUp: true}))
	f.Generation++
	g.Expect(attempts.Of(f)).To(Equal(Verdict{}), "a spec change lifts it")
}
