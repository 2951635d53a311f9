package binaries

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheProbeAcceptsOnlyAServerThatHasTheIndex(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index" {
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	g.Expect(probe(t.Context(), server.URL+"/index")).To(Succeed())
	g.Expect(probe(t.Context(), server.URL+"/elsewhere")).To(MatchError("elsewhere of " + server.Listener.Addr().String() + ": HTTP status 404 Not Found"))
}

// Without a network, the reason has to fit into a line.
func TestTheProbesErrorNamesHostAndCauseOnly(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	host := server.Listener.Addr().String()
	server.Close()
	g.Expect(probe(t.Context(), server.URL+"/a/long/path/index.yaml")).To(MatchError("index.yaml of " + host + ": connect: connection refused"))
	dns := &url.Error{Op: "Head", URL: "https://example.com/index.yaml", Err: &net.OpError{
		Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "example.com", Server: "192.0.2.53:53", IsNotFound: true},
	}}
	g.Expect(cause(dns)).To(MatchError("no such host"))
}

func TestTheProbeGivesUpOnASilentServer(t *testing.T) {
	g := NewWithT(t)
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	defer server.Close()
	defer close(silent)
	g.Expect(probe(t.Context(), server.URL+"/index")).To(MatchError("index of " + server.Listener.Addr().String() + ": no response within 3s"))
}
