// Package faults is an API server that fails on demand, for tests: a proxy in front of a real one, which
// passes everything on but for what its rules say is to fail.
//
//	server, err := faults.New(config)
//	…
//	server.Route(clientConfig)
//	failure := server.Fail(faults.Rule{Fault: faults.Gone, Verb: "watch", Resource: "foos", Times: 3})
//	…
//	failure.Lift()
//	fmt.Println(server.Requests().Since(start).Of("watch", "foos"))
//
// Clients speak TLS and HTTP/2 to it, as to an API server. Each keeps its own credentials, if they travel
// in a header (a token). A client certificate cannot pass a proxy: a request without a header goes on with
// the credentials of the configuration that the Server was made with.
package faults

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
)

// Server is the proxy.
type Server struct {
	port  *port
	http  *http.Server
	proxy *httputil.ReverseProxy
	// own carries requests with the credentials of the Server's configuration, bare those with their own.
	own, bare http.RoundTripper
	config    *rest.Config
	clock     clock.PassiveClock
	served    sync.WaitGroup

	mu       sync.Mutex
	failures []*Failure
	streams  map[*stream]bool
	log      Log
}

// certificate is the proxy's, for all Servers of a process: to make one takes time.
var certificate = sync.OnceValues(func() (pair [2][]byte, err error) {
	pair[0], pair[1], err = cert.GenerateSelfSignedCertKey("localhost", []net.IP{loopback[:]}, nil)
	return pair, err
})

// New starts a proxy in front of the API server that config leads to. Close ends it.
func New(config *rest.Config) (*Server, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	s := &Server{clock: clock.RealClock{}, streams: map[*stream]bool{}}
	if s.own, err = carrier(config); err != nil {
		return nil, err
	}
	if s.bare, err = carrier(rest.AnonymousClientConfig(config)); err != nil {
		return nil, err
	}
	pair, err := certificate()
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	key, err := tls.X509KeyPair(pair[0], pair[1])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	if s.port, err = newPort(); err != nil {
		return nil, err
	}
	silent := log.New(io.Discard, "", 0)
	s.config = &rest.Config{
		Host:            "https://" + s.port.address,
		TLSClientConfig: rest.TLSClientConfig{CAData: pair[0]},
		QPS:             -1,
	}
	s.proxy = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { rewrite(r, target) },
		Transport:      roundTripper(s.carry),
		FlushInterval:  -1,
		ModifyResponse: s.modify,
		// Nothing that the proxy itself would say: the client sees a broken connection.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     silent,
	}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), ErrorLog: silent,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{key}, MinVersion: tls.VersionTLS12},
	}
	return s, s.Accept()
}

// rewrite sends a request on. A watch must not come compressed, or its events could not be told apart: the
// API server compresses streamed lists, and the watches that they turn into, since 1.37
// (WatchListCompression in pkg/features/kube_features.go of k8s.io/apiserver).
func rewrite(r *httputil.ProxyRequest, target *url.URL) {
	r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
	if parse(r.In).Watch() {
		r.Out.Header.Del("Accept-Encoding")
	}
}

// carrier is a transport to the API server that changes nothing on the way.
func carrier(config *rest.Config) (http.RoundTripper, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	carrier, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the API server: %w", err)
	}
	return carrier, nil
}

// Config returns a configuration for clients that go through the proxy, with the credentials of the
// configuration that it was made with and no limit on requests.
func (s *Server) Config() *rest.Config {
	config := rest.CopyConfig(s.config)
	config.Wrap(s.record)
	return config
}

// Route has the clients of a configuration go through the proxy.
func (s *Server) Route(config *rest.Config) {
	config.Host, config.TLSClientConfig = s.config.Host, s.config.TLSClientConfig
	config.Wrap(s.record)
}

// Fail puts a rule in force. It strikes new requests, and watches under way as well: a fault that answers a
// request ends these in order, so that their client has to send one. Where several rules match, the oldest
// strikes.
func (s *Server) Fail(rule Rule) *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	failure := &Failure{rule: rule}
	s.failures = append(s.failures, failure)
	for stream := range s.streams {
		if !failure.matches(stream.request) || len(stream.strike) > 0 {
			continue
		}
		if !rule.Fault.inStream() || failure.strike() {
			stream.strike <- failure
		}
	}
	return failure
}

// Refuse has the server refuse all connections, and breaks those that are open.
func (s *Server) Refuse() error {
	if err := s.port.refuse(); err != nil {
		return err
	}
	s.served.Wait()
	return nil
}

// Accept ends Refuse.
func (s *Server) Accept() error {
	listener, err := s.port.listen()
	if err != nil {
		return err
	}
	s.served.Go(func() { _ = s.http.ServeTLS(listener, "", "") })
	return nil
}

// Close ends the proxy and everything that goes through it.
func (s *Server) Close() {
	s.port.release()
	_ = s.http.Close()
	s.served.Wait()
}

// Requests returns what the clients have sent so far. It is counted where it is sent, retries of client-go
// one by one, so that what nobody answers counts too.
func (s *Server) Requests() Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *Server) record(next http.RoundTripper) http.RoundTripper {
	return &recorder{next: next, server: s}
}

// recorder notes what goes through it.
type recorder struct {
	next   http.RoundTripper
	server *Server
}

// WrappedRoundTripper lets k8s.io/apimachinery/pkg/util/net find the transport below.
func (r *recorder) WrappedRoundTripper() http.RoundTripper { return r.next }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	request := parse(req)
	request.At = r.server.clock.Now()
	r.server.mu.Lock()
	r.server.log = append(r.server.log, request)
	r.server.mu.Unlock()
	return r.next.RoundTrip(req)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (s *Server) carry(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") != "" {
		return s.bare.RoundTrip(req)
	}
	return s.own.RoundTrip(req)
}

// plan is what is to become of a request.
type plan struct {
	request Request
	failure *Failure
}

type planKey struct{}

func (s *Server) serve(w http.ResponseWriter, req *http.Request) {
	p := plan{request: parse(req)}
	p.failure = s.failureFor(p.request)
	if p.failure != nil && !p.failure.rule.Fault.inStream() {
		_ = p.failure.answer(w)
		return
	}
	// The context ends with the answer, where the client's connection may live on.
	ctx, cancel := context.WithCancel(context.WithValue(req.Context(), planKey{}, p))
	defer cancel()
	s.proxy.ServeHTTP(w, req.WithContext(ctx))
}

func (s *Server) failureFor(request Request) *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failureForLocked(request)
}

func (s *Server) failureForLocked(request Request) *Failure {
	for _, failure := range s.failures {
		if failure.matches(request) && failure.strike() {
			return failure
		}
	}
	return nil
}

// modify filters a watch on its way back.
func (s *Server) modify(answer *http.Response) error {
	ctx := answer.Request.Context()
	p, ok := ctx.Value(planKey{}).(plan)
	if !ok {
		return errors.New("there is no plan for this request")
	}
	if !p.request.Watch() || answer.StatusCode != http.StatusOK {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.failure == nil {
		p.failure = s.failureForLocked(p.request) // a rule that came while the API server was answering
	}
	stream, body, err := newStream(ctx, p.request, answer, p.failure)
	if err != nil {
		return err
	}
	answer.Body = body
	s.streams[stream] = true
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, stream)
	})
	return nil
}
