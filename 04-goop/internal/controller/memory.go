package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory holds what no object records, and a restart forgets: since when Goops lack pods, and which have never had a
// DaemonSet. Its zero value is ready for use.
type memory struct {
	mu sync.Mutex
	// missing is the time since which pods are missing.
	missing map[types.NamespacedName]time.Time
	// unbegun are the uids of Goops whose record was created, and no DaemonSet since then.
	unbegun map[types.NamespacedName]types.UID
}

// forget is called when the Goop is gone.
func (m *memory) forget(goop types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missing, goop)
	delete(m.unbegun, goop)
}

// setUnbegun is called with the uid of a Goop when its record was created, before any DaemonSet is, and without one when a
// DaemonSet was created, or may have been.
func (m *memory) setUnbegun(goop types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unbegun == nil {
		m.unbegun = map[types.NamespacedName]types.UID{}
	}
	m.unbegun[goop] = uid
}

// isUnbegun reports whether it is certain that no DaemonSet was ever created for a Goop.
func (m *memory) isUnbegun(goop types.NamespacedName, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uid != "" && m.unbegun[goop] == uid
}

// podsMissing notes whether pods of a Goop are missing, and returns for how long they have been.
func (m *memory) podsMissing(goop types.NamespacedName, missing bool, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !missing {
		delete(m.missing, goop)
		return 0
	}
	if m.missing == nil {
		m.missing = map[types.NamespacedName]time.Time{}
	}
	since, ok := m.missing[goop]
	if !ok {
		since = now
		m.missing[goop] = now
	}
	return now.Sub(since)
}
