package lesson

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Link is the connection of one informer to the API server. It can be cut: then its watch ends, and the
// request that resumes the watch waits until Restore and gets 410 Gone. A server responds in this way when it
// no longer has the events since the resourceVersion. What the informer does next is between it and the server.
type Link struct {
	next http.RoundTripper

	mu      sync.Mutex
	watches map[*watchBody]struct{}
	// restored is closed while the link is not cut.
	restored chan struct{}
	resumed  chan struct{}
}

// NewLink returns a link that is not cut, and a client that uses it.
func NewLink(config *rest.Config) (*Link, kubernetes.Interface) {
	restored := make(chan struct{})
	close(restored)
	link := &Link{watches: map[*watchBody]struct{}{}, restored: restored}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		link.next = next
		return link
	})
	return link, Must(kubernetes.NewForConfig(config))
}

// Cut ends the watch and returns when the informer has tried to resume it.
func (l *Link) Cut(ctx context.Context) {
	l.mu.Lock()
	l.restored, l.resumed = make(chan struct{}), make(chan struct{}, 1)
	resumed := l.resumed
	for watch := range l.watches {
		watch.cut.Store(true)
		watch.Close()
	}
	l.mu.Unlock()
	select {
	case <-resumed:
	case <-ctx.Done():
		Check(ctx.Err())
	}
}

// Restore ends the interruption.
func (l *Link) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.restored)
}

// RoundTrip sends a request. A watch waits while the link is cut.
func (l *Link) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "" {
		return l.next.RoundTrip(request)
	}
	if waited, err := l.wait(request.Context()); err != nil {
		return nil, err
	} else if waited {
		return gone(request)
	}
	response, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	watch := &watchBody{ReadCloser: response.Body}
	l.mu.Lock()
	l.watches[watch] = struct{}{}
	l.mu.Unlock()
	response.Body = watch
	return response, nil
}

// wait returns when the link is not cut, and reports whether it was.
func (l *Link) wait(ctx context.Context) (waited bool, err error) {
	l.mu.Lock()
	restored, resumed := l.restored, l.resumed
	l.mu.Unlock()
	select {
	case <-restored:
		return false, nil
	default:
	}
	select {
	case resumed <- struct{}{}:
	default:
	}
	select {
	case <-restored:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

func gone(request *http.Request) (*http.Response, error) {
	status := apierrors.NewResourceExpired("the resourceVersion is too old").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(http.StatusGone), StatusCode: http.StatusGone,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}

// watchBody ends without an error when it is cut, like a watch that the server closes.
type watchBody struct {
	io.ReadCloser
	cut atomic.Bool
}

// Read reads from the watch.
func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.cut.Load() {
		err = io.EOF
	}
	return n, err
}
