package kube

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Gap lets changes happen that no event reports. It cuts the watches, calls change, and lets the server forget everything that
// was before the end of change: new watches from there fail, as Expire describes.
func (w *Wire) Gap(inStream bool, change func()) {
	w.CutWatches()
	change()
	// One more change, elsewhere, so that the resourceVersion of now is a later one in any case.
	now, err := Client(w.b).CoreV1().Namespaces().Get(w.b.Context(), Namespace(w.b), metav1.GetOptions{})
	if err != nil {
		w.b.Fatalf("getting a namespace: %v", err)
	}
	w.Expire(now.ResourceVersion, inStream)
	w.Release()
}

// Expire lets watches fail that begin before the resourceVersion: with an event ERROR in a stream that has begun, or with the
// status of the response.
func (w *Wire) Expire(resourceVersion string, inStream bool) {
	limit, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		w.b.Fatalf("the resourceVersion of a list: %v", err)
	}
	expired := apierrors.NewResourceExpired("too old resource version")
	w.Before(func(request Request, r *http.Request) (*http.Response, error) {
		if request.Verb != "watch" || !before(request.Query.Get("resourceVersion"), limit) {
			return nil, nil
		}
		if inStream {
			return w.streamError(r, expired), nil
		}
		w.b.Event("  the status of the response: 410, the resourceVersion is too old")
		return Failure(r, expired), nil
	})
}

// StreamError responds to the next watch with an event of type ERROR, and the end of the stream.
func (w *Wire) StreamError(err *apierrors.StatusError) {
	w.onNextWatch(Watches, func(r *http.Request) *http.Response { return w.streamError(r, err) })
}

func (w *Wire) streamError(r *http.Request, err *apierrors.StatusError) *http.Response {
	w.b.Event("  an event of type ERROR in the stream: %d, %s", err.ErrStatus.Code, err.ErrStatus.Message)
	return Response(r, strings.NewReader(fmt.Sprintf(`{"type":"ERROR","object":%s}`+"\n", encode(err))))
}

// Bookmark responds to the next watch that asks for bookmarks with one, at this resourceVersion, and the end of the stream.
func (w *Wire) Bookmark(resourceVersion string) {
	asks := func(request Request) bool { return request.Query.Get("allowWatchBookmarks") == "true" }
	w.onNextWatch(asks, func(r *http.Request) *http.Response {
		w.b.Event("  a bookmark at resourceVersion %s, and the end of the stream", resourceVersion)
		return Response(r, strings.NewReader(fmt.Sprintf(
			`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":%q}}}`+"\n", resourceVersion)))
	})
}

// onNextWatch responds to the next watch that is one of these, and to no later one.
func (w *Wire) onNextWatch(is func(Request) bool, respond func(*http.Request) *http.Response) {
	var done atomic.Bool
	w.Before(func(request Request, r *http.Request) (*http.Response, error) {
		if !Watches(request) || !is(request) || !done.CompareAndSwap(false, true) {
			return nil, nil
		}
		return respond(r), nil
	})
}

// before says whether a watch begins at a resourceVersion that is older than the limit. One without a resourceVersion, or
// with 0, begins now.
func before(resourceVersion string, limit uint64) bool {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	return err == nil && version != 0 && version < limit
}
