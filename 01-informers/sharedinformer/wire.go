package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// wire stands between the informers and the server. It counts the requests for ConfigMaps, and it can be
// cut: watches end, and what tries to resume them waits until it is mended and is then told 410 Gone, as a
// server does that has forgotten the resourceVersion meanwhile. What the informer does about it is between
// it and the real server.
type wire struct {
	next http.RoundTripper
	sent atomic.Int32

	mu      sync.Mutex
	watches map[*body]struct{}
	// mended is closed while the wire is whole.
	mended  chan struct{}
	resumed chan struct{}
}

func newWire() *wire {
	mended := make(chan struct{})
	close(mended)
	return &wire{watches: map[*body]struct{}{}, mended: mended}
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	w.next = next
	return w
}

// requests is how many were sent so far.
func (w *wire) requests() int { return int(w.sent.Load()) }

// cut ends the watches, and returns when the informer has tried to resume.
func (w *wire) cut(ctx context.Context) error {
	w.mu.Lock()
	w.mended, w.resumed = make(chan struct{}), make(chan struct{}, 1)
	resumed := w.resumed
	for watch := range w.watches {
		watch.cut.Store(true)
		watch.Close()
	}
	w.mu.Unlock()
	select {
	case <-resumed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mend lets requests through again.
func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.mended)
}

// RoundTrip sends a request, unless the wire is cut and it is a watch.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	w.sent.Add(1)
	if request.URL.Query().Get("watch") == "" {
		return w.next.RoundTrip(request)
	}
	if waited, err := w.pass(request.Context()); waited || err != nil {
		if err != nil {
			return nil, err
		}
		return gone(request)
	}
	response, err := w.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	watch := &body{ReadCloser: response.Body}
	w.mu.Lock()
	w.watches[watch] = struct{}{}
	w.mu.Unlock()
	response.Body = watch
	return response, nil
}

// pass waits until the wire is whole, and says whether it had to.
func (w *wire) pass(ctx context.Context) (waited bool, err error) {
	w.mu.Lock()
	mended, resumed := w.mended, w.resumed
	w.mu.Unlock()
	select {
	case <-mended:
		return false, nil
	default:
	}
	select {
	case resumed <- struct{}{}:
	default:
	}
	select {
	case <-mended:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

func gone(request *http.Request) (*http.Response, error) {
	status := apierrors.NewResourceExpired("the resourceVersion is too old").Status()
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

// body ends, when it is cut, as a watch does that the server closes: without an error.
type body struct {
	io.ReadCloser
	cut atomic.Bool
}

// Read reads from the watch.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.cut.Load() {
		err = io.EOF
	}
	return n, err
}
