package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/shared/apirequest"
	"example.com/workbook/shared/exercise/check"
)

// request is one request of the operator, in the terms of a role.
type request struct {
	verb, group, resource, name string
	code                        int
	// harmless is set for a server-side apply, for a patch without fields, and for a dry run.
	harmless bool
}

func (r request) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s/%s", r.verb, r.resource, r.name), "/")
}

var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// wire lies between the operator and the API server. It notes each request, and may respond in place of the server.
type wire struct {
	b *check.B

	mu       sync.Mutex
	requests []request
	instead  func(request) *http.Response
	faults   faults
}

func (w *wire) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		one, ok := parse(r)
		if !ok {
			return next.RoundTrip(r)
		}
		w.mu.Lock()
		instead := w.instead
		w.mu.Unlock()
		var response *http.Response
		var err error
		injected := w.fault(one.verb + " " + one.resource)
		if injected == lost {
			return nil, errLost
		}
		if instead != nil {
			response = instead(one)
		}
		if response == noResponse {
			w.b.Event("  %s: the connection is lost", one)
			return nil, errLost
		}
		if response == nil {
			response, err = next.RoundTrip(uncut(one, r))
		}
		if response != nil {
			one.code, response.Request = response.StatusCode, r
		}
		w.b.Event("  %s: %d", one, one.code)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requests = append(w.requests, one)
		if injected == crashed && err == nil {
			return nil, errors.Join(errLost, response.Body.Close())
		}
		return response, err
	})
}

// uncut is a request that goes on when the operator stops, if it writes. Where one is cut, the node port that the API server has
// allocated for it may stay allocated for minutes, and no Service has it.
func uncut(one request, r *http.Request) *http.Request {
	if !slices.Contains(writeVerbs, one.verb) {
		return r
	}
	return r.WithContext(context.WithoutCancel(r.Context()))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// replace has requests served by f. A nil response lets the request through, and noResponse loses it.
func (w *wire) replace(f func(request) *http.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instead = f
}

// interfere calls f before each request: another writer may come in between.
func (w *wire) interfere(f func(request)) {
	w.replace(func(r request) *http.Response {
		f(r)
		return nil
	})
}

// respond is a response in place of the API server's.
func respond(code int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// respondStatus is a response in place of the API server's, with a Status as its errors have one.
func respondStatus(code int, reason metav1.StatusReason, message string) *http.Response {
	body := compact(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: message, Reason: reason, Code: int32(code),
	})
	return respond(code, "application/json", body)
}

// count is how many requests there were.
func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

// from returns the requests from a number on.
func (w *wire) from(number int) []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests[number:])
}

// writes returns those of them that write, without Events and leases. An apply of what is there already changes nothing, as an
// empty patch and a dry run, and many correct operators send one each time: it does not count.
func (w *wire) writes(number int) []request {
	return slices.DeleteFunc(w.from(number), func(r request) bool {
		return !slices.Contains(writeVerbs, r.verb) || r.resource == "events" || r.resource == "leases" || r.harmless && r.code == http.StatusOK
	})
}

// parse reads a request. What is not about resources, discovery for instance, is none.
func parse(r *http.Request) (request, bool) {
	info := apirequest.Parse(r)
	one := request{
		verb: info.Verb, group: info.APIGroup, resource: info.Resource, name: info.Name,
		harmless: strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") || emptyPatch(r) || r.URL.Query().Has("dryRun"),
	}
	if info.Subresource != "" {
		one.resource += "/" + info.Subresource
	}
	return one, info.IsResourceRequest
}

// emptyPatch reports whether a request is a patch that changes no field. A lock, by the resourceVersion, changes none.
func emptyPatch(r *http.Request) bool {
	if r.Method != http.MethodPatch || r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	var patch map[string]any
	if json.NewDecoder(body).Decode(&patch) != nil {
		return false
	}
	if metadata, ok := patch["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
		if len(metadata) == 0 {
			delete(patch, "metadata")
		}
	}
	return len(patch) == 0
}

// noResponse stands for a connection that is lost: the operator gets an error.
var noResponse = &http.Response{}
