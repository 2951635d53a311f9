package connect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// The limits of GuardWatches: three times the interval between two bookmarks of the API server, and more watches of one resource
// than a reflector starts that backs off.
const (
	longestSilence = 3 * time.Minute
	watchInterval  = time.Second
	watchBurst     = 5
)

// GuardWatches wraps a configuration with IdleWatch and LimitWatches, for programs that run for long: a reflector does not notice
// that a watch hangs, and does not always back off.
func GuardWatches(config *rest.Config) {
	config.Wrap(IdleWatch(longestSilence))
	config.Wrap(LimitWatches(watchInterval, watchBurst))
}

// IdleWatch returns a wrapper for rest.Config.Wrap that ends a watch without an event, a bookmark or the headers of the response
// for as long as idle. A reflector then starts another watch from its resourceVersion, without a list. Only the time in which
// the caller waits for the server counts, not the time in which it processes an event. Other requests are not changed. An idle
// of 0 or less turns it off.
//
// The API server sends a bookmark about once a minute to a watch that allows them, as every reflector's
// does (defaultBookmarkFrequency in pkg/storage/cacher/cacher.go of k8s.io/apiserver). So idle has to be
// well above a minute. A watch without bookmarks on a resource that does not change is ended and started again and again, with
// one request each time.
//
// By itself, client-go v0.37.2 does not notice a watch that hangs: the connection is open, and the server neither sends anything
// nor ends it. TimeoutSeconds (Reflector.watch in tools/cache/reflector.go) is a parameter of the request, and the client has no
// timer for it. rest.Config.Timeout is 0 by default, and ends a watch that is busy just as well. An HTTP/2 connection on which
// nothing is received gets a ping (configureHTTP2Transport in k8s.io/apimachinery pkg/util/net/http.go), which finds a broken
// connection. But the other end responds to it: a load balancer does, whose server has failed, and an API server, one watch of
// which hangs. So a reflector whose watch hangs stays behind for ever, without an error.
func IdleWatch(idle time.Duration) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		if idle <= 0 {
			return next
		}
		return &idleWatch{next: next, idle: idle}
	}
}

// ErrIdleWatch is the error of a watch that IdleWatch has ended. It counts as a time-out, so that rest.Request.Watch and
// watch.StreamWatcher treat it as the end of a connection, which is no error, and not as a response that cannot be decoded,
// after which a reflector lists everything again.
var ErrIdleWatch error = idleError{}

type idleError struct{}

func (idleError) Error() string   { return "the watch was idle" }
func (idleError) Timeout() bool   { return true }
func (idleError) Temporary() bool { return true }

type idleWatch struct {
	next http.RoundTripper
	idle time.Duration
}

// WrappedRoundTripper lets k8s.io/apimachinery/pkg/util/net find the transport below.
func (w *idleWatch) WrappedRoundTripper() http.RoundTripper { return w.next }

// RoundTrip ends a watch by its context: net/http then closes the stream of HTTP/2 or the connection of HTTP/1.1, and a Read that
// waits returns, also of a compressed body. http.RoundTripper does not promise that Close may be called during a Read.
func (w *idleWatch) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isWatch(req) {
		return w.next.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(w.idle, func() {
		klog.FromContext(ctx).Info("Ending an idle watch", "path", req.URL.Path, "idle", w.idle)
		cancel(ErrIdleWatch)
	})
	response, err := w.next.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		err = explain(ctx, err)
		cancel(err)
		return nil, err
	}
	response.Body = &idleBody{ReadCloser: response.Body, idle: w.idle, timer: timer, ctx: ctx, cancel: cancel}
	return response, nil
}

// isWatch reads the parameter as the API server does (Convert_Slice_string_To_bool in
// k8s.io/apimachinery/pkg/runtime/conversion.go).
func isWatch(req *http.Request) bool {
	values := req.URL.Query()["watch"]
	return req.Method == http.MethodGet && len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// explain replaces the error that the transport returns after IdleWatch has canceled the context. It does not wrap it: url.Error,
// in which http.Client wraps the result, checks only the error inside it for a time-out.
func explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrIdleWatch) {
		return ErrIdleWatch
	}
	return err
}

// idleBody is the response to a watch. The timer runs only while a Read waits: it needs no goroutine, and a slow reader does not
// look like an idle server.
type idleBody struct {
	io.ReadCloser
	idle   time.Duration
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (b *idleBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil {
		// io.EOF too: the server may end the response when the request is canceled, before the client does.
		err = explain(b.ctx, err)
	}
	return n, err
}

// Close also cancels the context. A Read at the same time may start the timer again: it cancels a canceled context.
func (b *idleBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// LimitWatches returns a wrapper for rest.Config.Wrap. Each client starts at most burst watches of one path at once, and after
// those one in each interval of every: the others wait. Other requests are not changed. It has to be wrapped around
// IdleWatch, for which the wait would look like an idle watch.
//
// A reflector of client-go v0.37.2 backs off from most failures, but not from all. Reflector.watchList (tools/cache/reflector.go),
// which gets the streaming list, begins again at once after the error that the resourceVersion is too old, and after the end of
// a watch with at least one event that comes before the list is complete. A limit on the client's requests does not help:
// Request.Watch in rest/request.go does not apply it to watches. A server or a proxy that responds like that again and again
// gets a request after each response, hundreds of times a second.
func LimitWatches(every time.Duration, burst int) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return &limitedWatches{next: next, every: every, burst: burst, paths: map[string]flowcontrol.RateLimiter{}}
	}
}

type limitedWatches struct {
	next  http.RoundTripper
	every time.Duration
	burst int

	mu    sync.Mutex
	paths map[string]flowcontrol.RateLimiter // one for each resource that is watched: they are few
}

// WrappedRoundTripper lets k8s.io/apimachinery/pkg/util/net find the transport below.
func (l *limitedWatches) WrappedRoundTripper() http.RoundTripper { return l.next }

func (l *limitedWatches) RoundTrip(req *http.Request) (*http.Response, error) {
	if isWatch(req) {
		if err := l.of(req.URL.Path).Wait(req.Context()); err != nil {
			return nil, err
		}
	}
	return l.next.RoundTrip(req)
}

func (l *limitedWatches) of(path string) flowcontrol.RateLimiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter, ok := l.paths[path]
	if !ok {
		limiter = flowcontrol.NewTokenBucketRateLimiter(float32(time.Second)/float32(l.every), l.burst)
		l.paths[path] = limiter
	}
	return limiter
}
