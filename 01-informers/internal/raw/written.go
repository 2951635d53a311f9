package raw

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// staleRetry is when to reconcile a Foo again whose last writes are not in the caches. Their events usually trigger
	// that earlier.
	staleRetry = time.Second

	// longestStale is how long to wait for the caches. A watch that hangs takes longer, and so does a restore of etcd from a
	// backup, after which resourceVersions begin at an older one.
	longestStale = 30 * time.Second
)

// written remembers, for each Foo, the resourceVersions of what its last reconciliation wrote, until they are in the caches.
// A reconciliation that reads an older state would apply and report the same again. Kubernetes' own controllers have a
// ConsistencyStore for that (k8s.io/kubernetes/pkg/controller/util/consistency), which client-go lacks.
type written struct {
	foos, deployments store
	clock             clock.PassiveClock

	mu     sync.Mutex
	writes map[cache.ObjectName]write
	// deleted are the Deployments that were deleted last for each Foo. A uid is never used again.
	deleted map[cache.ObjectName][]types.UID
}

// store is the part of cache.Store with the newest resourceVersion that it has. The API server's resourceVersions of one
// resource can be compared (k8s.io/apimachinery/pkg/util/resourceversion).
type store interface {
	LastStoreSyncResourceVersion() string
}

// write has the resourceVersions of what was written for one Foo.
type write struct {
	foo, deployment string
	at              time.Time
}

func newWritten(foos, deployments store, clock clock.PassiveClock) *written {
	return &written{foos: foos, deployments: deployments, clock: clock, writes: map[cache.ObjectName]write{}, deleted: map[cache.ObjectName][]types.UID{}}
}

// noteFoo notes that the Foo was written.
func (w *written) noteFoo(key cache.ObjectName, resourceVersion string) {
	w.note(key, func(last *write) { last.foo = resourceVersion })
}

// noteDeployment notes that the Deployment of a Foo was written.
func (w *written) noteDeployment(key cache.ObjectName, resourceVersion string) {
	w.note(key, func(last *write) { last.deployment = resourceVersion })
}

func (w *written) note(key cache.ObjectName, set func(*write)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.writes[key]
	set(&last)
	last.at = w.clock.Now()
	w.writes[key] = last
}

// noteDeleted notes that Deployments of a Foo were deleted.
func (w *written) noteDeleted(key cache.ObjectName, uids []types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(uids) > 0 {
		w.deleted[key] = uids
	}
}

// isDeleted reports whether a Deployment is one of those that were deleted last for a Foo. A deletion
// returns no resourceVersion that could be compared with that of the cache.
func (w *written) isDeleted(key cache.ObjectName, uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.deleted[key], uid)
}

// seen reports whether the caches have all that was written for a Foo.
func (w *written) seen(key cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.writes[key]
	stale := ok && (isBehind(w.foos, last.foo) || isBehind(w.deployments, last.deployment))
	if stale && w.clock.Since(last.at) < longestStale {
		return false
	}
	delete(w.writes, key)
	return true
}

// forget drops what is known of a Foo.
func (w *written) forget(key cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.writes, key)
	delete(w.deleted, key)
}

// isBehind reports whether a cache is older than a resourceVersion. A cache without one counts as up to date: the store has
// none without the feature gate AtomicFIFO, which is on by default.
func isBehind(s store, resourceVersion string) bool {
	order, err := resourceversion.CompareResourceVersion(s.LastStoreSyncResourceVersion(), resourceVersion)
	return err == nil && order < 0
}
