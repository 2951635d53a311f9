package inprocess

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
)

// line is the transport of an operator, which can be cut for good.
type line struct {
	next   http.RoundTripper
	cutOff context.Context
	cancel context.CancelFunc
}

func newLine() *line {
	l := &line{}
	l.cutOff, l.cancel = context.WithCancel(context.Background())
	return l
}

var errCut = errors.New("the connection is cut")

// wrap wraps a transport. Each client of a rest.Config has a line of its own, and all are cut at once.
func (l *line) wrap(next http.RoundTripper) http.RoundTripper {
	return &line{next: next, cutOff: l.cutOff, cancel: l.cancel}
}

// RoundTrip fails if the line is cut, also during the request and while the body of the response is being read, for instance of
// a watch.
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.cutOff.Err() != nil {
		return nil, errCut
	}
	ctx, cancel := context.WithCancel(req.Context())
	forget := context.AfterFunc(l.cutOff, cancel) //nolint:contextcheck // all requests are cut at once, whatever their contexts
	response, err := l.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		forget()
		cancel()
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, end: func() { forget(); cancel() }}
	return response, nil
}

// body calls end when it is closed.
type body struct {
	io.ReadCloser
	end func()
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// confine returns a wrapper that turns each list and watch of the whole cluster into one of a namespace.
func confine(namespace string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if parts := wholeCluster.FindStringSubmatch(req.URL.Path); parts != nil {
				req = req.Clone(req.Context())
				req.URL.Path = parts[1] + "/namespaces/" + namespace + "/" + parts[2]
			}
			return next.RoundTrip(req)
		})
	}
}

// wholeCluster are the paths of what the operator watches.
var wholeCluster = regexp.MustCompile(`^(.*/apis/[^/]+/[^/]+)/(foos|deployments)$`)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
