package plugin

import (
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// failedPart is the part of a progress line that is red.
var failedPart = regexp.MustCompile(`[1-9]\d* failed`)

// progress is the line that shows the progress of the work. One goroutine sets it, and another draws it.
type progress struct {
	clock  clock.PassiveClock
	since  time.Time
	status atomic.Pointer[v1alpha1.GoopStatus]
}

func (p *progress) line() string {
	// The API server's clock may be ahead of this one.
	elapsed := max(0, p.clock.Since(p.since).Truncate(time.Second))
	status := p.status.Load()
	if status == nil || status.ObservedGeneration == 0 {
		return fmt.Sprintf("waiting for the operator, %s", elapsed)
	}
	return fmt.Sprintf("%d done, %d running, %d failed of %d, %s",
		status.Succeeded+status.Failed, status.Running, status.Failed, status.Desired, elapsed)
}
