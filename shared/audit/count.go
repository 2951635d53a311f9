package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
		fmt.Fprintf(&text, "%s %d %s %s (%s)\n", e.RequestReceivedTimestamp.Format("15:04:05.000"), code, e.Verb, object(e), e.User.Username)
	}
	return text.String()
}

// object is what a request was about: "lolcows/status a/moo". A request that creates an object whose name the API server makes
// up has no name.
func object(e *Event) string {
	ref := e.ObjectRef
	if ref == nil {
		return ""
	}
	resource := strings.TrimSuffix(ref.Resource+"/"+ref.Subresource, "/")
	return resource + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
}

// isLeaderElection knows an event about leader election by its namespace: the lease's, which is
// that of the ServiceAccount. Objects that an operator reports on are in other namespaces.
func isLeaderElection(e *Event) bool {
	parts := strings.Split(e.User.Username, ":")
	return len(parts) == 4 && e.ObjectRef.Namespace == parts[2]
}
