package wire

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/workbook/shared/apirequest"
)

// Request is a request that a client sent.
type Request struct {
	// At is when it was sent.
	At time.Time
	// Verb is that of RBAC: get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Resource is the plural name, with a subresource as "foos/status". It is empty for a path that is not that of a
	// resource, such as /version.
	Resource string
}

// Watch reports whether the request is a watch. A streaming list is one.
func (r Request) Watch() bool { return r.Verb == "watch" }

// String is "patch foos/status".
func (r Request) String() string { return r.Verb + " " + r.Resource }

func parse(req *http.Request) Request {
	info := apirequest.Parse(req)
	request := Request{Verb: info.Verb, Resource: info.Resource}
	if info.Subresource != "" {
		request.Resource += "/" + info.Subresource
	}
	return request
}

// Log is the requests of a period, in order.
type Log []Request

// Since returns the requests that were sent at or after a time.
func (l Log) Since(start time.Time) Log {
	return l.filter(func(r Request) bool { return !r.At.Before(start) })
}

// Before returns the requests that were sent before a time.
func (l Log) Before(end time.Time) Log {
	return l.filter(func(r Request) bool { return r.At.Before(end) })
}

// Of returns the requests with a verb for a resource. An empty string matches all.
func (l Log) Of(verb, resource string) Log {
	return l.filter(func(r Request) bool { return matches(verb, r.Verb) && matches(resource, r.Resource) })
}

func (l Log) filter(keep func(Request) bool) Log {
	return slices.DeleteFunc(slices.Clone(l), func(r Request) bool { return !keep(r) })
}

func matches(pattern, value string) bool { return pattern == "" || pattern == value }

// String counts the requests by verb and resource: "3: 1 list foos, 2 watch foos".
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
