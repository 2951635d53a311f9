package kube

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/apirequest"
	"example.com/workbook/shared/exercise/check"
)

// Request is one request of the reader's code.
type Request struct {
	// Verb is the API's: get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Resource is as in the path, with the subresource, as in pods or deployments/status.
	Resource, Namespace, Name string
	Query                     url.Values
}

func (r Request) String() string {
	text := strings.TrimSuffix(fmt.Sprintf("%s %s/%s", r.Verb, r.Resource, r.Name), "/")
	if rv := r.Query.Get("resourceVersion"); rv != "" {
		text += " from resourceVersion " + rv
	}
	return text
}

// Wire lies between the reader's code and the API server. It notes each request and injects faults.
type Wire struct {
	b *check.B

	mu       sync.Mutex
	requests []Request
	hold     chan struct{}
	open     map[*stream]bool
	before   func(Request, *http.Request) (*http.Response, error)
	// fail is how many more requests of this kind fail.
	fail     int
	failKind func(Request) bool
}

// NewWire returns a wire without faults.
func NewWire(b *check.B) *Wire {
	w := &Wire{b: b, open: map[*stream]bool{}}
	b.Cleanup(w.Release)
	return w
}

// Config returns access to the API server through the wire.
func (w *Wire) Config() *rest.Config {
	config := ReaderConfig(w.b)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{w, next} })
	return config
}

// Client returns a client for the reader's code.
func (w *Wire) Client() kubernetes.Interface {
	client, err := kubernetes.NewForConfig(w.Config())
	if err != nil {
		w.b.Fatalf("making a client: %v", err)
	}
	return client
}

// Requests are those so far with one of these verbs, or all.
func (w *Wire) Requests(verbs ...string) []Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []Request
	for _, r := range w.requests {
		if len(verbs) == 0 || slices.Contains(verbs, r.Verb) {
			found = append(found, r)
		}
	}
	return found
}

// Before is called for each request. If it returns a response or an error, the request is not sent. It may change the
// request.
func (w *Wire) Before(f func(Request, *http.Request) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = f
}

// Lists are lists, and streaming lists.
func Lists(r Request) bool { return r.Verb == "list" || r.Query.Get("sendInitialEvents") == "true" }

// Watches are watches, and streaming lists.
func Watches(r Request) bool { return r.Verb == "watch" }

// Reads are requests that change nothing, watches among them.
func Reads(r Request) bool { return slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// Writes are requests that change something.
func Writes(r Request) bool { return !Reads(r) }

// Deletes are deletions of one object, or of several.
func Deletes(r Request) bool { return r.Verb == "delete" || r.Verb == "deletecollection" }

// Fail lets the next n requests of a kind fail, as if the server were away.
func (w *Wire) Fail(n int, kind func(Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail, w.failKind = n, kind
}

// FailRead lets the read with this number fail, from 1, of those that call sends. It returns whether there were so many.
func (w *Wire) FailRead(number int, call func()) bool {
	reads := 0
	w.Fail(1, func(r Request) bool {
		if Writes(r) {
			return false
		}
		reads++
		return reads == number
	})
	call()
	w.Fail(0, nil)
	return reads >= number
}

// fails says whether the request has to fail.
func (w *Wire) fails(r Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail == 0 || !w.failKind(r) {
		return false
	}
	w.fail--
	return true
}

// CutWatches ends all watches that are open, as a proxy does that has a time limit. It holds lists and watches that are begun from
// now on until Release is called, so that none of them sees half of what changes in between.
func (w *Wire) CutWatches() {
	w.mu.Lock()
	if w.hold == nil {
		w.hold = make(chan struct{})
	}
	open := w.open
	w.open = map[*stream]bool{}
	w.mu.Unlock()
	w.b.Event("the watches are cut")
	for s := range open {
		s.cut()
	}
}

// SilenceWatches lets the open watches of a kind stay open, and bring nothing any more, as a connection does whose other end is
// gone.
func (w *Wire) SilenceWatches(kind func(Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.open {
		if kind(s.request) {
			w.b.Event("this watch is silent from now on: %s", s.request)
			s.silent.Store(true)
		}
	}
}

// Release lets lists and watches begin again.
func (w *Wire) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hold != nil {
		close(w.hold)
		w.hold = nil
	}
}

// OpenWatches is how many watches the server is serving.
func (w *Wire) OpenWatches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open)
}

type transport struct {
	wire *Wire
	next http.RoundTripper
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	request := parse(r)
	t.wire.mu.Lock()
	t.wire.requests = append(t.wire.requests, request)
	hold := t.wire.hold
	t.wire.mu.Unlock()
	t.wire.b.Event("%s", request)
	if hold != nil && (Lists(request) || Watches(request)) {
		select {
		case <-hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if t.wire.fails(request) {
		t.wire.b.Event("  it fails: the API server is away")
		return nil, ErrAway
	}
	t.wire.mu.Lock()
	before := t.wire.before
	t.wire.mu.Unlock()
	if before != nil {
		if response, err := before(request, r); response != nil || err != nil {
			return response, err
		}
	}
	response, err := t.next.RoundTrip(r)
	if err == nil && request.Verb == "watch" && response.StatusCode == http.StatusOK {
		response.Body = t.wire.stream(request, response.Body)
	}
	return response, err
}

func parse(r *http.Request) Request {
	info := apirequest.Parse(r)
	request := Request{Verb: info.Verb, Resource: info.Resource, Namespace: info.Namespace, Name: info.Name, Query: r.URL.Query()}
	switch {
	case !info.IsResourceRequest:
		request.Resource = r.URL.Path
	case info.Subresource != "":
		request.Resource += "/" + info.Subresource
	}
	return request
}

// stream is the body of a watch.
type stream struct {
	io.ReadCloser
	request Request
	wire    *Wire
	once    sync.Once
	done    chan struct{}
	// silent is set when the watch brings nothing any more.
	silent atomic.Bool
}

func (w *Wire) stream(request Request, body io.ReadCloser) *stream {
	s := &stream{ReadCloser: body, request: request, wire: w, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[s] = true
	return s
}

func (s *stream) cut() {
	s.once.Do(func() { close(s.done) })
	s.ReadCloser.Close()
}

// Read returns the end of the stream after a cut, whatever the connection says. What a silent stream brings is lost.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	for err == nil && s.silent.Load() {
		n, err = s.ReadCloser.Read(p)
	}
	select {
	case <-s.done:
		if n == 0 {
			err = io.EOF
		}
	default:
	}
	return n, err
}

func (s *stream) Close() error {
	s.wire.mu.Lock()
	delete(s.wire.open, s)
	s.wire.mu.Unlock()
	return s.ReadCloser.Close()
}

// ErrAway is what a server that is away looks like to a client.
var ErrAway error = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
