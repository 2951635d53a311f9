package controller

import (
	"errors"
	"io"
	"net/http"
	"regexp"
)

// crash is the request at which the controller crashes, and how. The zero value is no crash.
type crash struct {
	// at counts the requests that are what, or all where what is empty.
	what string
	at   int
	// after: the request takes effect, and the response is lost.
	after bool
	// reads: instead of one request, each read of each reconciliation fails once, and the reconciliation is repeated.
	reads bool
}

var errCrash = errors.New("the operator crashed")

// requests counts all requests, reads included, and fails one of them once.
type requests struct {
	next  http.RoundTripper
	crash crash
	seen  []string
	// writes are the writes that took effect.
	writes map[string]int
	// read counts the reads of this reconciliation, and failed the tries of it in which one of them has failed.
	read, failed int
}

var upToNamespace = regexp.MustCompile(`.*/namespaces/[^/]+/`)

func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	what := req.Method + " " + upToNamespace.ReplaceAllString(req.URL.Path, "")
	r.seen = append(r.seen, what)
	if r.crash.reads && req.Method == http.MethodGet {
		if r.read++; r.read > r.failed {
			r.failed++
			return nil, errCrash
		}
	}
	if r.count(r.crash.what) != r.crash.at || (r.crash.what != "" && r.crash.what != what) {
		return r.forward(req, what)
	}
	if r.crash.after {
		response, err := r.forward(req, what)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	return nil, errCrash
}

// count counts the requests so far that are what, or all where what is empty.
func (r *requests) count(what string) int {
	if what == "" {
		return len(r.seen)
	}
	n := 0
	for _, one := range r.seen {
		if one == what {
			n++
		}
	}
	return n
}

// forward sends a request, and counts it if it has changed something.
func (r *requests) forward(req *http.Request, what string) (*http.Response, error) {
	response, err := r.next.RoundTrip(req)
	if err == nil && req.Method != http.MethodGet && response.StatusCode < http.StatusBadRequest {
		if r.writes == nil {
			r.writes = map[string]int{}
		}
		r.writes[what]++
	}
	return response, err
}

func (r *requests) written() int {
	sum := 0
	for _, n := range r.writes {
		sum += n
	}
	return sum
}
