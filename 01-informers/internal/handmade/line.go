package handmade

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Line is a line to the API server that can be cut, for lessons and tests: what happens meanwhile is not seen,
// and the watch cannot be continued afterwards.
type Line struct {
	inner cache.ListerWatcherWithContext
	lw    cache.ListerWatcher

	mu      sync.Mutex
	stream  *stream
	mended  chan struct{} // not nil while the line is cut
	expired bool          // the next watch is answered with 410
}

// NewLine makes a line that is not cut.
func NewLine(inner cache.ListerWatcher) *Line {
	line := &Line{inner: cache.ToListerWatcherWithContext(inner)}
	line.lw = cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  line.inner.ListWithContext,
		WatchFuncWithContext: line.begin,
	}, inner)
	return line
}

// ListerWatcher is what an informer is given.
func (l *Line) ListerWatcher() cache.ListerWatcher { return l.lw }

// Cut ends the watch, and holds the next one until Mend.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mended, l.expired = make(chan struct{}), true
	if l.stream != nil {
		l.stream.Stop()
	}
}

// Mend answers the next watch with 410 Gone, as the API server does when it no longer has the events since the
// resourceVersion that it is asked for. The one after that is a watch again.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.mended)
	l.mended = nil
}

func (l *Line) begin(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	l.mu.Lock()
	mended := l.mended
	l.mu.Unlock()
	if mended != nil {
		select {
		case <-mended:
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
