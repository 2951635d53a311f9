package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// AtOnce does the same with all that are named, at the same time, and ends the spec if that fails for one of them.
func AtOnce[T any](all map[string]T, do func(name string, one T)) {
	ginkgo.GinkgoHelper()
	var wait sync.WaitGroup
	var failed atomic.Int32
	for name, one := range all {
		wait.Go(func() {
			// The failures are those of the one spec: they do not say of which it was.
			passed := false
			defer func() {
				if !passed {
					failed.Add(1)
					fmt.Fprintf(ginkgo.GinkgoWriter, "failed: %s\n", name)
				}
			}()
			defer ginkgo.GinkgoRecover()
			do(name, one)
			passed = true
		})
	}
	wait.Wait()
	gomega.Expect(failed.Load()).To(gomega.BeZero(), "those that fail are named above")
}
