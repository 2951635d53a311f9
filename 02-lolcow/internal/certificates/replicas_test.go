package certificates

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testclock "k8s.io/utils/clock/testing"
)

// once returns a hook that does something the first time. What it does may call the hook again.
func once(do func()) func() {
	done := false
	return func() {
		if !done {
			done = true
			do()
		}
	}
}

// The clocks of replicas differ by more than skew, and the API server's is behind. No replica discards what the other has made.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	behind, ahead := c.replica(), c.replica()
	clock := testclock.NewFakeClock(c.clock.Now().Add(2 * skew))
	ahead.Clock = clock
	c.sync(behind)
	for range (lifetime + overlap) / time.Hour {
		c.sync(ahead, behind)
		c.expectTrusted(behind, c.caBundle())
		c.expectTrusted(ahead, c.caBundle())
		c.clock.Step(time.Hour)
		clock.Step(time.Hour)
	}
	c.Expect(c.writes).To(Equal(7), "the Secret and caBundle at creation, for the successor, and at expiry; the Secret when the successor is served")
}

// A replica stalls before it writes caBundle. In the meantime an administrator has a new certificate made.
func TestOldCABundleIsNotWrittenOverANewer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	slow, fast := c.replica(), c.replica()
	c.beforeApply = once(func() {
		c.Expect(c.Delete(t.Context(), c.secret())).To(Succeed())
		c.sync(fast)
	})
	c.sync(slow)
	c.Expect(c.expectTrusted(slow, c.caBundle())).To(Equal(c.expectTrusted(fast, c.caBundle())))
}

func TestSecretIsDeletedBeforeItIsUpdated(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	replica := c.replica()
	c.sync(replica)
	c.clock.Step(lifetime - renewBefore)
	c.beforeWrite = once(func() { c.Expect(c.Delete(t.Context(), c.secret())).To(Succeed()) })
	c.sync(replica)
	c.expectTrusted(replica, c.caBundle())
}
