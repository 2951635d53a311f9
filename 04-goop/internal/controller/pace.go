package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// writePace is how often, at most, record and status of a Goop are written, both together, while its workers
// report. When five thousand workers end one after another, a write for each would load the API server for no use.
const writePace = time.Second

// writer is a part of a Goop that is written: its status or its record.
type writer int

const (
	writesStatus writer = iota
	writesRecord
)

// podsPatience is how long pods may be missing before that is reported. The DaemonSet controller creates pods within
// moments; if it fails, it retries with a growing back-off.
const podsPatience = 15 * time.Second

// pace remembers when record and status of Goops were last written, since when nothing is at work for them, and which have
// had no DaemonSet. A restart forgets all of it. Its zero value is ready for use.
type pace struct {
	mu   sync.Mutex
	last map[types.NamespacedName]lastWrite
	idle map[types.NamespacedName]time.Time
	// unbegun are the uids of Goops whose record was created, and no DaemonSet since then.
	unbegun map[types.NamespacedName]types.UID
}

type lastWrite struct {
	at time.Time
	by writer
}

// wait is how long a write has to wait: 0 if it may be done now. After a write of the record, the record waits
// for twice the pace: otherwise the status would never be written while workers report.
func (p *pace) wait(goop types.NamespacedName, by writer, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[goop]
	if !ok {
		return 0
	}
	pause := writePace
	if by == writesRecord && last.by == writesRecord {
		pause = 2 * writePace
	}
	// The clock may have been set back.
	return min(pause, max(0, pause-now.Sub(last.at)))
}

// wrote is called after each write.
func (p *pace) wrote(goop types.NamespacedName, by writer, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.NamespacedName]lastWrite{}
	}
	p.last[goop] = lastWrite{at: now, by: by}
}

// forget is called when the Goop is gone.
func (p *pace) forget(goop types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, goop)
	delete(p.idle, goop)
	delete(p.unbegun, goop)
}

// setUnbegun is called with the uid of a Goop when its record was created, before any DaemonSet is, and without one when a
// DaemonSet was created, or may have been.
func (p *pace) setUnbegun(goop types.NamespacedName, uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unbegun == nil {
		p.unbegun = map[types.NamespacedName]types.UID{}
	}
	p.unbegun[goop] = uid
}

// isUnbegun reports whether it is certain that no DaemonSet was ever created for a Goop.
func (p *pace) isUnbegun(goop types.NamespacedName, uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uid != "" && p.unbegun[goop] == uid
}

// idles notes whether nothing is at work for a Goop, and returns for how long that has been so.
func (p *pace) idles(goop types.NamespacedName, idle bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !idle {
		delete(p.idle, goop)
		return 0
	}
	if p.idle == nil {
		p.idle = map[types.NamespacedName]time.Time{}
	}
	since, ok := p.idle[goop]
	if !ok {
		since = now
		p.idle[goop] = now
	}
	return now.Sub(since)
}
