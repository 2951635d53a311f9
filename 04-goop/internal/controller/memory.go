package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory holds what no object records, and a restart forgets, by the name of the Goop. Its zero value is ready for use.
type memory struct {
	// missing has the times since which pods are missing.
	missing sync.Map
	// unbegun has the uids of Goops whose record was created, and since then no DaemonSet, as far as is known.
	unbegun sync.Map
}

// forget is called when the Goop is gone.
func (m *memory) forget(goop types.NamespacedName) {
	m.missing.Delete(goop)
	m.unbegun.Delete(goop)
}

// podsMissing notes whether pods of a Goop are missing, and returns for how long they have been.
func (m *memory) podsMissing(goop types.NamespacedName, missing bool, now time.Time) time.Duration {
	if !missing {
		m.missing.Delete(goop)
		return 0
	}
	since, _ := m.missing.LoadOrStore(goop, now)
	return now.Sub(since.(time.Time))
}
