package inprocess

import (
	"net/http"
	"regexp"

	"example.com/workbook/01-informers/internal/transport"
)

// confine returns a wrapper that turns each list and watch of the whole cluster into one of a namespace.
func confine(namespace string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return transport.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if parts := wholeCluster.FindStringSubmatch(req.URL.Path); parts != nil {
				req = req.Clone(req.Context())
				req.URL.Path = parts[1] + "/namespaces/" + namespace + "/" + parts[2]
			}
			return next.RoundTrip(req)
		})
	}
}

// wholeCluster are the paths of what the operator watches.
var wholeCluster = regexp.MustCompile(`^(.*/apis/[^/]+/[^/]+)/(foos|deployments)$`)
