package binaries

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

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
	g.Expect(probe(t.Context(), server.URL+"/elsewhere")).To(MatchError(ContainSubstring("404")))
}

func TestTheProbeGivesUpOnASilentServer(t *testing.T) {
	g := NewWithT(t)
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	defer server.Close()
	defer close(silent)
	start := time.Now()
	g.Expect(probe(t.Context(), server.URL)).NotTo(Succeed())
	g.Expect(time.Since(start)).To(BeNumerically("<", reachable+2*time.Second))
}
