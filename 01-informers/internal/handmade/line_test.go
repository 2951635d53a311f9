package handmade

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Line is a connection to the API server that tests can cut: the informer misses what happens meanwhile, and
// cannot continue its watch afterwards.
type Line struct {
	inner cache.ListerWatcherWithContext
	lw    cache.ListerWatcher

	mu       sync.Mutex
	stream   *stream
	restored chan struct{} // not nil while the connection is cut
	expired  bool          // the response to the next watch is 410
}

// NewLine returns a connection that is not cut.
func NewLine(inner cache.ListerWatcher) *Line {
	line := &Line{inner: cache.ToListerWatcherWithContext(inner)}
	line.lw = cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  line.inner.ListWithContext,
		WatchFuncWithContext: line.begin,
	}, inner)
	return line
}

// ListerWatcher is for the Options of an informer.
func (l *Line) ListerWatcher() cache.ListerWatcher { return l.lw }

// Cut ends the watch. The next one waits until Restore.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restored, l.expired = make(chan struct{}), true
	if l.stream != nil {
		l.stream.Stop()
	}
}

// Restore ends a Cut. The response to the next watch is 410 Gone, as from an API server that no longer has the events since
// the requested resourceVersion.
func (l *Line) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.restored)
	l.restored = nil
}

func (l *Line) begin(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	l.mu.Lock()
	restored := l.restored
	l.mu.Unlock()
	if restored != nil {
		select {
		case <-restored:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expired {
		l.expired = false
		return nil, apierrors.NewResourceExpired("the resourceVersion is too old")
	}
	inner, err := l.inner.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	l.stream = newStream(inner, nil)
	go l.stream.pump()
	return l.stream, nil
}
