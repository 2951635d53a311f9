package main

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
)

func TestParametersOfTheDefaultLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(delays(workqueue.DefaultTypedControllerRateLimiter[string](), 20)).To(
			Equal(delays(newLimiter[string](), 20)),
			"one key never empties the bucket")

		limiter := workqueue.DefaultTypedControllerRateLimiter[int]()
		bucket := bucketDelays(200)
		for i := range 200 {
			g.Expect(limiter.When(i)).To(BeNumerically("~", max(baseDelay, bucket[i]), time.Microsecond), "the first failure of key %d", i)
		}
	})
}
