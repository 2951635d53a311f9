package faults

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is one that a client sent.
type Request struct {
	// At is when it was sent.
	At time.Time
	// Method and Path are those of HTTP, Path without the query.
	Method, Path string
	// Verb is get, list, watch, create, update, patch, delete or deletecollection, as RBAC has it.
	Verb string
	// Resource is the plural name, with a subresource as "foos/status". It is empty for a path that is not
	// an object's, as of discovery.
	Resource string
}

// Watch tells whether it is a watch, a streamed list included.
func (r Request) Watch() bool { return r.Verb == "watch" }

// String is "patch foos/status".
func (r Request) String() string { return r.Verb + " " + r.Resource }

func parse(req *http.Request) Request {
	r := Request{Method: req.Method, Path: req.URL.Path}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		r.Verb = strings.ToLower(req.Method)
		return r
	}
	// namespaces/NAME is an object, namespaces/NAME/… is in front of one, save for its two subresources.
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	r.Resource = parts[0]
	if len(parts) > 2 {
		r.Resource += "/" + parts[2]
	}
	r.Verb = verb(req, len(parts) > 1)
	return r
}

func verb(req *http.Request, named bool) string {
	switch {
	case req.Method == http.MethodPost:
		return "create"
	case req.Method == http.MethodPut:
		return "update"
	case req.Method == http.MethodDelete && !named:
		return "deletecollection"
	case req.Method != http.MethodGet:
		return strings.ToLower(req.Method)
	case !slices.Contains([]string{"", "0", "false"}, req.URL.Query().Get("watch")):
		return "watch"
	case named:
		return "get"
	}
	return "list"
}

// Log is the requests of a while, in order.
type Log []Request

// Since returns the requests that were sent at or after a time.
func (l Log) Since(start time.Time) Log {
	return l.only(func(r Request) bool { return !r.At.Before(start) })
}

// Before returns the requests that were sent before a time.
func (l Log) Before(end time.Time) Log {
	return l.only(func(r Request) bool { return r.At.Before(end) })
}

// Of returns the requests of a verb to a resource. An empty word matches all.
func (l Log) Of(verb, resource string) Log {
	return l.only(func(r Request) bool { return matches(verb, r.Verb) && matches(resource, r.Resource) })
}

func (l Log) only(wanted func(Request) bool) Log {
	return slices.DeleteFunc(slices.Clone(l), func(r Request) bool { return !wanted(r) })
}

func matches(wanted, is string) bool { return wanted == "" || wanted == is }

// String counts the requests by what they are: "3: 1 list foos, 2 watch foos".
func (l Log) String() string {
	counts := map[string]int{}
	for _, r := range l {
		counts[r.String()]++
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
	}
	return strings.TrimSuffix(fmt.Sprintf("%d: %s", len(l), strings.Join(parts, ", ")), ": ")
}
