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

// What GuardWatches allows: three times as long a silence as there is between two bookmarks of the API server,
// and no more watches of one resource than a reflector that pauses as it should ever starts.
const (
	longestSilence = 3 * time.Minute
	watchPace      = time.Second
	watchBurst     = 5
)

// GuardWatches wraps a configuration with IdleWatch and PaceWatches, as the long-running programs of this
// stage use them: a reflector notices neither a watch that hangs nor that it asks without a pause.
func GuardWatches(config *rest.Config) {
	config.Wrap(IdleWatch(longestSilence))
	config.Wrap(PaceWatches(watchPace, watchBurst))
}

// IdleWatch returns a wrapper for rest.Config.Wrap that ends a watch on which nothing came for as long as
// idle: no event and no bookmark, or not even the head of the answer. A reflector then starts another watch
// from where it is, without a list. Only the time in which the caller waits for the server counts, not that
// in which it works on an event. All other requests pass as they are. An idle of 0 or less turns it off.
//
// The API server sends a bookmark about once a minute to a watch that allows them, as every reflector's
// does (defaultBookmarkFrequency in pkg/storage/cacher/cacher.go of k8s.io/apiserver). So idle has to be
// well above a minute; a watch without bookmarks on a resource at rest is ended and started again all the
// time, at a cost of one request each.
//
// What client-go v0.37.2 does by itself about a watch that hangs (the connection is open, nothing comes,
// and it does not end):
//
//   - tools/cache/reflector.go, Reflector.watch and watchList: they ask the server to end the watch after 5
//     to 10 minutes (TimeoutSeconds, from defaultMinWatchTimeout and defaultMaxWatchTimeout). That is a
//     parameter of the request and nothing more: there is no timer beside it, and handleAnyWatch waits for
//     the next event for ever. Its one ticker (newInitialEventsEndBookmarkTicker) logs a warning every 10
//     seconds while a streamed list is not complete, and ends nothing.
//   - rest/request.go, Request.Watch: no time limit either, while Request.request, which is behind Do, has
//     that of rest.Config.Timeout. HTTPClientFor (rest/transport.go) makes that an http.Client.Timeout too,
//     which does end a watch, and just as well one that is busy; it is 0 by default.
//   - k8s.io/apimachinery pkg/util/net/http.go, configureHTTP2Transport: an HTTP/2 connection on which
//     nothing comes for 30 seconds gets a ping, and is closed if no answer comes in 15. That finds a
//     connection that is dead. It is the other end of the connection that answers, though: a load balancer
//     does it for a server behind it that is gone, and an API server for one watch of it that is stuck.
//     With HTTP/1.1 there is TCP's keep-alive only (transport/cache.go, tlsTransportCache.get).
//
// So a reflector whose watch hangs stays behind, for ever and without a word:
// TestReflectorOnAHangingWatch shows it.
func IdleWatch(idle time.Duration) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		if idle <= 0 {
			return next
		}
		return &idleWatch{next: next, idle: idle}
	}
}

// ErrIdleWatch is what a watch ends with that IdleWatch has ended. It counts as a time-out, so that
// rest.Request.Watch and watch.StreamWatcher take it for the end of a connection, which is no error, and
// not for an answer that cannot be decoded, after which a reflector lists everything again.
var ErrIdleWatch error = idleError{}

type idleError struct{}

func (idleError) Error() string   { return "nothing came on the watch" }
func (idleError) Timeout() bool   { return true }
func (idleError) Temporary() bool { return true }

type idleWatch struct {
	next http.RoundTripper
	idle time.Duration
}

// WrappedRoundTripper lets k8s.io/apimachinery/pkg/util/net find the transport below.
func (w *idleWatch) WrappedRoundTripper() http.RoundTripper { return w.next }

// RoundTrip ends a watch by its context: net/http then gives up the stream of HTTP/2 or the connection of
// HTTP/1.1, and a Read that waits, be it of a compressed body, returns. A Close beside a Read would ask
// more of the transports below than http.RoundTripper promises.
func (w *idleWatch) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isWatch(req) {
		return w.next.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(w.idle, func() {
		klog.FromContext(ctx).Info("Ending a watch on which nothing came", "path", req.URL.Path, "idle", w.idle)
		cancel(ErrIdleWatch)
	})
	answer, err := w.next.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		err = explain(ctx, err)
		cancel(err)
		return nil, err
	}
	answer.Body = &idleBody{ReadCloser: answer.Body, idle: w.idle, timer: timer, ctx: ctx, cancel: cancel}
	return answer, nil
}

// isWatch reads the parameter as the API server does (Convert_Slice_string_To_bool in
// k8s.io/apimachinery/pkg/runtime/conversion.go).
func isWatch(req *http.Request) bool {
	values := req.URL.Query()["watch"]
	return req.Method == http.MethodGet && len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// explain replaces the error that our own cancelling led to, whatever the transport makes of it. It is not
// wrapped: url.Error, which http.Client puts around it, asks only the error inside it whether it is a
// time-out.
func explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrIdleWatch) {
		return ErrIdleWatch
	}
	return err
}

// idleBody is the answer to a watch. The timer runs while a Read waits, and only then: no goroutine is
// kept for it, and a slow reader is not taken for a silent server.
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
		// io.EOF too: a server may see the end of the request, and end the answer, before the client does.
		err = explain(b.ctx, err)
	}
	return n, err
}

// Close lets go of the context too. A Read beside it may start the timer once more: what it would cancel
// is cancelled then.
func (b *idleBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// PaceWatches returns a wrapper for rest.Config.Wrap with which each client starts no more watches of one
// path than burst at once, and after those one each time that every has passed: the others wait. All other requests pass as
// they are. It has to be wrapped around IdleWatch, so that a watch that waits its turn is not taken for one
// that is idle.
//
// A reflector backs off from most failures, for 0.8 seconds and then longer, up to a minute
// (defaultBackoffInit and defaultBackoffMax in tools/cache/reflector.go of client-go v0.37.2, with the
// jitter doubled), but not from all. Reflector.watchList, which streams the list, begins again at once
//
//   - when it is told that the resourceVersion is too old (isErrorRetriableWithSideEffectsFn), although it
//     asks for the latest from then on, and
//   - when the watch ends, in order or in the middle of an object, after at least one event and before the
//     bookmark that completes the list (handleAnyWatch finds a watch too short only if it brought nothing).
//
// Nor does a limit on the client's requests help: Request.Watch in rest/request.go leaves watches out of
// it. A server, or what is in front of it, that goes on answering like that is asked again as fast as it
// answers, hundreds of times a second: TestReflectorAsksWithoutPause in internal/faults counts.
func PaceWatches(every time.Duration, burst int) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return &pacedWatches{next: next, every: every, burst: burst, paths: map[string]flowcontrol.RateLimiter{}}
	}
}

type pacedWatches struct {
	next  http.RoundTripper
	every time.Duration
	burst int

	mu    sync.Mutex
	paths map[string]flowcontrol.RateLimiter // one for each resource that is watched: they are few
}

// WrappedRoundTripper lets k8s.io/apimachinery/pkg/util/net find the transport below.
func (p *pacedWatches) WrappedRoundTripper() http.RoundTripper { return p.next }

func (p *pacedWatches) RoundTrip(req *http.Request) (*http.Response, error) {
	if isWatch(req) {
		if err := p.of(req.URL.Path).Wait(req.Context()); err != nil {
			return nil, err
		}
	}
	return p.next.RoundTrip(req)
}

func (p *pacedWatches) of(path string) flowcontrol.RateLimiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	limiter, ok := p.paths[path]
	if !ok {
		limiter = flowcontrol.NewTokenBucketRateLimiter(float32(time.Second)/float32(p.every), p.burst)
		p.paths[path] = limiter
	}
	return limiter
}
