package controller

import (
	"errors"
	"io"
	"net/http"
	"regexp"
)

// crash says at which of its requests, and how, the controller is struck down. The zero value is no crash.
type crash struct {
	at int
	// after: the request reaches the server and takes effect, and the answer is lost.
	after bool
	// reads: instead of one request each read of each pass fails, and the pass is then made again.
	reads bool
}

var errCrash = errors.New("the operator crashed")

// requests counts what goes through it, reads included, and fails one of them, once.
type requests struct {
	next  http.RoundTripper
	crash crash
	seen  []string
	// writes are those that took effect.
	writes map[string]int
	// read counts the reads of this pass, and failed in how many tries of it one of them has failed.
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
	if len(r.seen) != r.crash.at {
		return r.pass(req, what)
	}
	if r.crash.after {
		answer, err := r.pass(req, what)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	return nil, errCrash
}

// pass sends a request on, and counts it if it has changed something.
func (r *requests) pass(req *http.Request, what string) (*http.Response, error) {
	answer, err := r.next.RoundTrip(req)
	if err == nil && req.Method != http.MethodGet && answer.StatusCode < http.StatusBadRequest {
		if r.writes == nil {
			r.writes = map[string]int{}
		}
		r.writes[what]++
	}
	return answer, err
}

func (r *requests) written() int {
	sum := 0
	for _, n := range r.writes {
		sum += n
	}
	return sum
}
