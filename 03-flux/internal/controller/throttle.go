package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// readinessInterval is how often, at most, a status is written for readiness alone. A thousand pods become ready in
// as many steps, and no user reads each of them.
const readinessInterval = time.Second

// throttle remembers when the statuses of objects were last written. Its zero value is ready for use.
type throttle struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// wait is how long a write for readiness alone has to wait: 0 if it may be done now. No other change waits.
func (t *throttle) wait(object types.NamespacedName, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.last[object]
	if !ok || now.Before(last) {
		return 0
	}
	return max(0, readinessInterval-now.Sub(last))
}

// wrote is called after each write of a status.
func (t *throttle) wrote(object types.NamespacedName, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[types.NamespacedName]time.Time{}
	}
	t.last[object] = now
}

// forget is called when the object is gone.
func (t *throttle) forget(object types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, object)
}

// soonest is the shorter of two waits, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
