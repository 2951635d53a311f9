package raw

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// staleRetry is when to come back to a Foo whose last writes the caches have not seen. Their events will
	// most likely wake it before that.
	staleRetry = time.Second

	// longestStale is how long to wait for the caches at all. A watch that hangs takes longer, and after a
	// restore of etcd from a backup resource versions begin anew at an older one.
	longestStale = 30 * time.Second
)

// written remembers, for each Foo, the resourceVersions that its last pass got back for what it wrote, until
// the caches have seen them. A cache is behind: a pass that began before it heard of the pass before it
// would apply and report the same again. It is the idea of the ConsistencyStore in Kubernetes' own controllers
// (k8s.io/kubernetes/pkg/controller/util/consistency), which client-go does not have.
type written struct {
	foos, deployments store
	clock             clock.PassiveClock

	mu    sync.Mutex
	notes map[cache.ObjectName]note
}

// store is the part of cache.Store that tells how far a cache is. The API server's resourceVersions may be
// compared for one resource (k8s.io/apimachinery/pkg/util/resourceversion).
type store interface {
	LastStoreSyncResourceVersion() string
}

type note struct {
	foo, deployment string
	at              time.Time
}

func newWritten(foos, deployments store, clock clock.PassiveClock) *written {
	return &written{foos: foos, deployments: deployments, clock: clock, notes: map[cache.ObjectName]note{}}
}

// foo notes that a pass over key wrote the Foo.
func (w *written) foo(key cache.ObjectName, resourceVersion string) {
	w.note(key, func(n *note) { n.foo = resourceVersion })
}

// deployment notes that a pass over key wrote the Deployment.
func (w *written) deployment(key cache.ObjectName, resourceVersion string) {
	w.note(key, func(n *note) { n.deployment = resourceVersion })
}

func (w *written) note(key cache.ObjectName, set func(*note)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.notes[key]
	set(&n)
	n.at = w.clock.Now()
	w.notes[key] = n
}

// seen tells whether the caches have seen all that was noted of key.
func (w *written) seen(key cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, ok := w.notes[key]
	if !ok {
		return true
	}
	stale := isBehind(w.foos, n.foo) || isBehind(w.deployments, n.deployment)
	if stale && w.clock.Since(n.at) < longestStale {
		return false
	}
	delete(w.notes, key)
	return true
}

// forget drops what is noted of key.
func (w *written) forget(key cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.notes, key)
}

// isBehind tells whether a cache is older than a resourceVersion. Where the two cannot be compared it is
// taken to be up to date: the store gives none without the feature gate AtomicFIFO, which is on by default.
func isBehind(s store, resourceVersion string) bool {
	order, err := resourceversion.CompareResourceVersion(s.LastStoreSyncResourceVersion(), resourceVersion)
	return err == nil && order < 0
}
