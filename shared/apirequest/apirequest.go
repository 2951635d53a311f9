// Package apirequest reads from an HTTP request which object of the Kubernetes API it is about.
package apirequest

import (
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

var factory = &request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// Parse returns the verb, resource, namespace and name of a request, read by the API server's own code. A request that is
// not about a resource, such as one for discovery, has a verb only.
func Parse(r *http.Request) request.RequestInfo {
	info, err := factory.NewRequestInfo(r)
	if err != nil {
		return request.RequestInfo{Verb: r.Method}
	}
	return *info
}
