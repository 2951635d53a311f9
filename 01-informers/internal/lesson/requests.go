package lesson

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/internal/transport"
)

// Request is one request that a client sent, and its result.
type Request struct {
	// At is the time at which it was sent.
	At     time.Time
	Method string
	Path   string
	Query  url.Values
	// Status is the HTTP status code, or 0 if there was no response; then Err is set.
	Status int
	Err    error
}

// Watch reports whether it is a watch.
func (r Request) Watch() bool { return r.Query.Get("watch") == "true" }

// String returns the method, the last part of the path with the query, and the status. The text is the same
// in every run: a resourceVersion is printed as N, a continue token as T, and the timeout, which clients
// choose at random, is left out.
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
	target := path.Base(r.Path)
	if len(parameters) > 0 {
		target += "?" + strings.Join(parameters, "&")
	}
	if r.Err != nil {
		return fmt.Sprintf("%s %s: no response", r.Method, target)
	}
	return fmt.Sprintf("%s %s: %d", r.Method, target, r.Status)
}

// Requests records requests in the order of their responses.
type Requests struct{ Record[Request] }

// Attach returns a copy of config. Requests of clients that use the copy are recorded.
func (r *Requests) Attach(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.RoundTripper(func(request *http.Request) (*http.Response, error) {
			at := clock.RealClock{}.Now()
			response, err := next.RoundTrip(request)
			one := Request{At: at, Method: request.Method, Path: request.URL.Path, Query: request.URL.Query(), Err: err}
			if response != nil {
				one.Status = response.StatusCode
			}
			r.Add(one)
			return response, err
		})
	})
	return config
}

// PrintRequests prints what clients requested.
func (e *Env) PrintRequests(requests []Request) {
	if len(requests) == 0 {
		e.Printf("   request: none\n")
	}
	for _, request := range requests {
		e.Printf("   request: %s\n", request)
	}
}
