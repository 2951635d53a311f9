package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Object is what a request was about.
type Object struct {
	Resource, Subresource, Namespace, Name string
}

func (o Object) String() string {
	text := o.Resource
	if o.Subresource != "" {
		text += "/" + o.Subresource
	}
	return text + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// Of is the object of an event. A request that creates an object whose name the API server makes
// up has no name.
func Of(e *Event) Object {
	if e.ObjectRef == nil {
		return Object{}
	}
	return Object{e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Namespace, e.ObjectRef.Name}
}

// Count counts requests by object.
func Count(events []Event) map[Object]int {
	out := map[Object]int{}
	for i := range events {
		out[Of(&events[i])]++
	}
	return out
}

// Permissions returns what was asked for, one "verb group/resource" for each combination, sorted:
// "patch apps/deployments", "get /services", "update my.domain/lolcows/status".
func Permissions(events []Event) []string {
	set := map[string]bool{}
	for i := range events {
		e := &events[i]
		if e.ObjectRef == nil {
			continue
		}
		resource := e.ObjectRef.APIGroup + "/" + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		set[e.Verb+" "+resource] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// Describe lists events for the message of a failed test, one line each.
func Describe(events []Event) string {
	var text strings.Builder
	for i := range events {
		e := &events[i]
		code := int32(0)
		if e.ResponseStatus != nil {
			code = e.ResponseStatus.Code
		}
		fmt.Fprintf(&text, "%s %d %s %s (%s)\n", e.RequestReceivedTimestamp.Format("15:04:05.000"), code, e.Verb, Of(e), e.User.Username)
	}
	return text.String()
}

// isLeaderElection knows an event about leader election by its namespace: the lease's, which is
// that of the ServiceAccount. Objects that an operator reports on are in other namespaces.
func isLeaderElection(e *Event) bool {
	parts := strings.Split(e.User.Username, ":")
	return len(parts) == 4 && e.ObjectRef.Namespace == parts[2]
}
