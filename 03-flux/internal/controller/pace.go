package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// readinessPace is how often, at most, a status is written for readiness alone. A thousand pods become ready in
// as many steps, and no user reads each of them.
const readinessPace = time.Second

// podsPatience is how long the Job controller may take to create the pods of a Job. It takes less than a second, unless
// something rejects them.
const podsPatience = 15 * time.Second

// pace remembers when the statuses of objects were last written. Its zero value is ready for use.
type pace struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// wait is how long a write for readiness alone has to wait: 0 if it may be done now. What else changes in a
// status never waits.
func (p *pace) wait(object types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[object]
	if !ok || now.Before(last) {
		return 0
	}
	return max(0, readinessPace-now.Sub(last))
}

// wrote is called after each write of a status.
func (p *pace) wrote(object types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.NamespacedName]time.Time{}
	}
	p.last[object] = now
}

// forget is called when the object is gone.
func (p *pace) forget(object types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, object)
}

// soonest is the shorter of two waits, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
