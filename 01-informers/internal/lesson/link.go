package lesson

import (
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/transport"
)

// Link is the connection of one informer to the API server. It can be cut: then its watch ends. The first watch after Restore
// fails with the error that client-go makes of 410 Gone. A server responds in this way when it no longer has the events since the
// resourceVersion. What the informer does next is between it and the server.
type Link struct {
	outage  transport.Outage
	expired atomic.Bool
}

// NewLink returns a link that is not cut, and a client that uses it.
func NewLink(config *rest.Config) (*Link, kubernetes.Interface) {
	link := &Link{}
	config = rest.CopyConfig(config)
	link.outage.Attach(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Query().Get("watch") != "" && link.expired.CompareAndSwap(true, false) {
				_ = response.Body.Close()
				return nil, apierrors.NewResourceExpired("the resourceVersion is too old")
			}
			return response, err
		})
	})
	return link, Must(kubernetes.NewForConfig(config))
}

// Cut ends the watch. Changes after it are no events for the informer.
func (l *Link) Cut() {
	l.expired.Store(true)
	l.outage.Begin()
}

// Restore ends the interruption.
func (l *Link) Restore() { l.outage.End() }
