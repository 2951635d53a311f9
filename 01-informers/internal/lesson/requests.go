package lesson

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Request is one request that a client sent, and how it was answered.
type Request struct {
	// At is when it was sent.
	At     time.Time
	Method string
	Path   string
	Query  url.Values
	// Status is the HTTP status, or 0 where no answer came: Err says why.
	Status int
	Err    error
}

// Watch says that it opened a stream of changes. All other requests for a collection are lists.
func (r Request) Watch() bool { return r.Query.Get("watch") == "true" }

// Streams says that it asked for a watch-list: a watch that begins with all that there is.
func (r Request) Streams() bool { return r.Watch() && r.Query.Get("sendInitialEvents") == "true" }

// Version is the resourceVersion that it asked for.
func (r Request) Version() string { return r.Query.Get("resourceVersion") }

// String is the request as a reader would type it after the namespace, with the answer's status. It is
// the same in every run: versions that the server counted are written N, continue tokens T, and the
// time-out, which clients choose at random, is left out.
func (r Request) String() string {
	var parameters []string
	for key, values := range r.Query {
		value := values[0]
		switch {
		case key == "watch" || key == "timeoutSeconds" || key == "timeout":
			continue
		case key == "continue":
			value = "T"
		case key == "resourceVersion" && value != "0":
			value = "N"
		}
		parameters = append(parameters, key+"="+value)
	}
	slices.Sort(parameters)
	if r.Watch() {
		parameters = slices.Insert(parameters, 0, "watch=true")
	}
	asked := path.Base(r.Path)
	if len(parameters) > 0 {
		asked += "?" + strings.Join(parameters, "&")
	}
	if r.Err != nil {
		return fmt.Sprintf("%s %s: no answer", r.Method, asked)
	}
	return fmt.Sprintf("%s %s: %d", r.Method, asked, r.Status)
}

// Requests is a record of what clients ask, in the order of the answers. Its zero value is ready to use,
// from several goroutines too.
type Requests struct {
	mu  sync.Mutex
	all []Request
}

// Record returns a copy of config: what clients made from it ask is recorded.
func (r *Requests) Record(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			at := clock.RealClock{}.Now()
			response, err := next.RoundTrip(request)
			one := Request{At: at, Method: request.Method, Path: request.URL.Path, Query: request.URL.Query(), Err: err}
			if response != nil {
				one.Status = response.StatusCode
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.all = append(r.all, one)
			return response, err
		})
	})
	return config
}

// All returns what was recorded since the last Take.
func (r *Requests) All() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// Take returns what was recorded since the last Take.
func (r *Requests) Take() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.all
	r.all = nil
	return taken
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
