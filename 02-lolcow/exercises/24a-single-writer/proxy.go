package singlewriter

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"example.com/workbook/shared/apirequest"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// proxy lies between a replica and the API server.
type proxy struct {
	b        *check.B
	name     string
	next     http.RoundTripper
	listener net.Listener

	mu sync.Mutex
	// asked is how many requests for leases there were, and leased whether one has been written.
	asked  int
	leased bool
	// early says that an entry was written before that.
	early bool
	// lost says that requests for leases get no response, and loseNext that this begins with the next renewal.
	lost, loseNext bool
	// hold says that the next write is held, and held is that write.
	hold bool
	held *http.Request
}

func newProxy(b *check.B, name string) *proxy {
	config := kube.Config(b)
	next, err := rest.TransportFor(config)
	if err != nil {
		b.Fatalf("making a transport: %v", err)
	}
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		b.Fatalf("the address of the API server: %v", err)
	}
	p := &proxy{b: b, name: name, next: next}
	if p.listener, err = new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0"); err != nil {
		b.Fatalf("starting a proxy: %v", err)
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport: p,
			ErrorLog:  log.New(io.Discard, "", 0),
			// No response at all, as from a network.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		},
	}
	stopped := b.Go(func() { _ = server.Serve(p.listener) })
	b.Cleanup(func() {
		_ = server.Close()
		<-stopped
	})
	return p
}

func (p *proxy) address() string { return "http://" + p.listener.Addr().String() }

// RoundTrip sends a request on, unless it is to be lost or held.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	info := apirequest.Parse(r)
	lease := info.Resource == "leases"
	writes := kube.Writes(kube.Request{Verb: info.Verb})
	switch {
	case lease && p.loses(), info.Resource == "configmaps" && writes && p.holds(r):
		p.wait(r)
		return nil, http.ErrAbortHandler
	}
	response, err := p.next.RoundTrip(r)
	if lease && writes && err == nil && response.StatusCode < http.StatusBadRequest {
		p.renewed()
	}
	return response, err
}

// wait waits until the other end gives up. It has to read the request, or it would not learn of that.
func (p *proxy) wait(r *http.Request) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	select {
	case <-r.Context().Done():
	case <-p.b.Context().Done():
	}
}

// loses counts a request for a lease, and says whether it is lost.
func (p *proxy) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.lost
}

// renewed notes that a lease was written.
func (p *proxy) renewed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leased {
		p.b.Event("%s has acquired the lease", p.name)
	}
	p.leased = true
	if p.loseNext {
		p.b.Event("%s has renewed its lease; from now on, its requests for it get no response", p.name)
		p.lost = true
	}
}

// holds notes a write of an entry, and says whether it is held. If so, requests for leases are lost from now on.
func (p *proxy) holds(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leased {
		p.early = true
	}
	if !p.hold || p.held != nil {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	p.b.Event("a write of %s is on its way; from now on, requests of %s for its lease get no response", p.name, p.name)
	p.held = r.Clone(p.b.Context())
	p.held.Body = io.NopCloser(bytes.NewReader(body))
	p.lost = true
	return true
}

// deliver sends the write that was held, and returns the status of the response.
func (p *proxy) deliver() (int, error) {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	response, err := p.next.RoundTrip(held)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

// state is what the check asks for.
type state struct {
	asked               int
	early, lost, caught bool
}

func (p *proxy) state() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return state{asked: p.asked, early: p.early, lost: p.lost, caught: p.held != nil}
}

// set changes what becomes of requests.
func (p *proxy) set(how func(p *proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how(p)
}
