package inprocess

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
)

// line is an operator's connection to the server, which can be cut once and for all.
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

// wrap puts the line before a transport. Each client of a rest.Config gets a line of its own, and all are
// cut at once.
func (l *line) wrap(next http.RoundTripper) http.RoundTripper {
	return &line{next: next, cutOff: l.cutOff, cancel: l.cancel}
}

// RoundTrip fails at once where the line is cut, and in the middle where it is cut then: also while the body
// of the answer, a watch for example, is being read.
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.cutOff.Err() != nil {
		return nil, errCut
	}
	ctx, cancel := context.WithCancel(req.Context())
	forget := context.AfterFunc(l.cutOff, cancel) //nolint:contextcheck // what is cut is all requests at once, whatever their contexts
	answer, err := l.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		forget()
		cancel()
		return nil, err
	}
	answer.Body = &body{ReadCloser: answer.Body, end: func() { forget(); cancel() }}
	return answer, nil
}

// body tells when an answer has been read, or is not wanted any more.
type body struct {
	io.ReadCloser
	end func()
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// confine returns a wrapper that turns each list and watch of a whole cluster's objects into one of a
// namespace's.
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
