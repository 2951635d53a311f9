package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// writeInterval is how often, at most, record and status of a Goop are written, both together, while its workers
// report. When five thousand workers end one after another, a write for each would load the API server for no use.
const writeInterval = time.Second

// writer is a part of a Goop that is written: its status or its record.
type writer int

const (
	writesStatus writer = iota
	writesRecord
)

// throttle remembers when record and status of Goops were last written. Its zero value is ready for use.
type throttle struct {
	mu   sync.Mutex
	last map[types.NamespacedName]lastWrite
}

type lastWrite struct {
	at time.Time
	by writer
}

// wait is how long a write has to wait: 0 if it may be done now. After a write of the record, the record waits
// twice as long: otherwise the status would never be written while workers report.
func (t *throttle) wait(goop types.NamespacedName, by writer, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.last[goop]
	if !ok {
		return 0
	}
	pause := writeInterval
	if by == writesRecord && last.by == writesRecord {
		pause = 2 * writeInterval
	}
	// The clock may have been set back.
	return min(pause, max(0, pause-now.Sub(last.at)))
}

// wrote is called after each write.
func (t *throttle) wrote(goop types.NamespacedName, by writer, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[types.NamespacedName]lastWrite{}
	}
	t.last[goop] = lastWrite{at: now, by: by}
}

// forget is called when the Goop is gone.
func (t *throttle) forget(goop types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, goop)
}
