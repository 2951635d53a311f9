// Package wire injects faults between an API server and clients that are not changed for the test. It is a proxy that
// forwards all requests to a real API server, except those for which a Rule says otherwise: they fail, or their watch
// ends, hangs or breaks.
//
//	proxy, err := wire.New(config)
//	…
//	proxy.Route(clientConfig)
//	injection := proxy.Inject(wire.Rule{Fault: wire.Gone, Verb: "watch", Resource: "foos", Times: 3})
//	…
//	injection.Stop()
//	fmt.Println(proxy.Requests().Since(start).Of("watch", "foos"))
//
// Clients speak TLS and HTTP/2 to it, as to an API server. Each client keeps its own credentials if it sends them in a
// header, as it sends a token. A proxy cannot forward a client certificate: a request without an Authorization header is
// sent with the credentials of the configuration that the Proxy was created with.
package wire

import (
	"bytes"
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

// Proxy stands between clients and an API server.
type Proxy struct {
	port  *port
	http  *http.Server
	proxy *httputil.ReverseProxy
	// own sends requests with the credentials of the Proxy's configuration, anonymous with those in their header.
	own, anonymous http.RoundTripper
	config         *rest.Config
	clock          clock.PassiveClock
	served         sync.WaitGroup

	mu         sync.Mutex
	injections []*Injection
	streams    map[*stream]bool
	log        Log
}

// certificate is the serving certificate and its key, for all proxies of a process: to generate a key takes time.
var certificate = sync.OnceValues(func() (pair [2][]byte, err error) {
	pair[0], pair[1], err = cert.GenerateSelfSignedCertKey("localhost", []net.IP{loopback[:]}, nil)
	return pair, err
})

// New starts a proxy for the API server that config names. Close ends it.
func New(config *rest.Config) (*Proxy, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	p := &Proxy{clock: clock.RealClock{}, streams: map[*stream]bool{}}
	if p.own, err = transportFor(config); err != nil {
		return nil, err
	}
	if p.anonymous, err = transportFor(rest.AnonymousClientConfig(config)); err != nil {
		return nil, err
	}
	pair, err := certificate()
	if err != nil {
		return nil, fmt.Errorf("generating a certificate: %w", err)
	}
	key, err := tls.X509KeyPair(pair[0], pair[1])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	if p.port, err = newPort(); err != nil {
		return nil, err
	}
	silent := log.New(io.Discard, "", 0)
	p.config = &rest.Config{
		Host:            "https://" + p.port.address,
		TLSClientConfig: rest.TLSClientConfig{CAData: pair[0]},
		QPS:             -1,
	}
	p.proxy = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { rewrite(r, target) },
		Transport:      roundTripper(p.forward),
		FlushInterval:  -1,
		ModifyResponse: p.filter,
		// The proxy sends no response of its own: where it cannot forward one, the client sees a broken connection.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     silent,
	}
	p.http = &http.Server{
		Handler: http.HandlerFunc(p.serve), ErrorLog: silent,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{key}, MinVersion: tls.VersionTLS12},
	}
	return p, p.Listen()
}

// rewrite directs a request to the API server. The events of a compressed watch could not be told apart, and the API
// server compresses streaming lists, and the watches that follow them, since 1.37 (WatchListCompression in
// pkg/features/kube_features.go of k8s.io/apiserver).
func rewrite(r *httputil.ProxyRequest, target *url.URL) {
	r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
	if parse(r.In).Watch() {
		r.Out.Header.Del("Accept-Encoding")
	}
}

// transportFor returns a transport to the API server that changes neither requests nor responses.
func transportFor(config *rest.Config) (http.RoundTripper, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating a transport to the API server: %w", err)
	}
	return transport, nil
}

// Config returns a configuration for clients of the proxy, with the credentials of the configuration that it was created
// with and no limit on requests.
func (p *Proxy) Config() *rest.Config {
	config := rest.CopyConfig(p.config)
	config.Wrap(p.record)
	return config
}

// Route changes a configuration so that its clients use the proxy.
func (p *Proxy) Route(config *rest.Config) {
	config.Host, config.TLSClientConfig = p.config.Host, p.config.TLSClientConfig
	config.Wrap(p.record)
}

// Inject puts a rule into effect, for new requests and for open watches. A fault of a request ends open watches without an
// error, so that their clients send a new request. Where several rules match, the oldest applies.
func (p *Proxy) Inject(rule Rule) *Injection {
	p.mu.Lock()
	defer p.mu.Unlock()
	injection := &Injection{rule: rule}
	p.injections = append(p.injections, injection)
	for stream := range p.streams {
		if !injection.matches(stream.request) || len(stream.fault) > 0 {
			continue
		}
		if !rule.Fault.inStream() || injection.take() {
			stream.fault <- injection
		}
	}
	return injection
}

// Down closes all connections. Until Listen is called, clients get "connection refused".
func (p *Proxy) Down() error {
	if err := p.port.close(); err != nil {
		return err
	}
	p.served.Wait()
	return nil
}

// Listen accepts connections again after Down.
func (p *Proxy) Listen() error {
	listener, err := p.port.listen()
	if err != nil {
		return err
	}
	p.served.Go(func() { _ = p.http.ServeTLS(listener, "", "") })
	return nil
}

// Close ends the proxy and all requests to it.
func (p *Proxy) Close() {
	p.port.release()
	_ = p.http.Close()
	p.served.Wait()
}

// Requests returns what the clients have sent until now. It is recorded in the client, so that a request that reaches no
// server counts too, and each retry of client-go counts as one.
func (p *Proxy) Requests() Log {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

func (p *Proxy) record(next http.RoundTripper) http.RoundTripper {
	return &recorder{next: next, proxy: p}
}

// recorder is the part of a client's transport that records its requests.
type recorder struct {
	next  http.RoundTripper
	proxy *Proxy
}

// WrappedRoundTripper lets k8s.io/apimachinery/pkg/util/net find the transport below.
func (r *recorder) WrappedRoundTripper() http.RoundTripper { return r.next }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	request := parse(req)
	request.At = r.proxy.clock.Now()
	r.proxy.mu.Lock()
	r.proxy.log = append(r.proxy.log, request)
	r.proxy.mu.Unlock()
	return r.next.RoundTrip(req)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (p *Proxy) forward(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") != "" {
		return p.anonymous.RoundTrip(req)
	}
	return p.own.RoundTrip(req)
}

// plan is a request, and what is injected into its response: nil is nothing.
type plan struct {
	request   Request
	injection *Injection
}

type planKey struct{}

func (p *Proxy) serve(w http.ResponseWriter, req *http.Request) {
	request := parse(req)
	p.mu.Lock()
	injection := p.injectionFor(request)
	p.mu.Unlock()
	if injection != nil && !injection.rule.Fault.inStream() {
		_ = injection.respond(w)
		return
	}
	// All of the body is read before it is forwarded. The API server may respond before it has read the body, for instance to a wrong
	// token. A client of HTTP/2 then stops sending, and waits for the end of the response, for which ReverseProxy would wait until
	// it has the rest of the body.
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	// The context ends with the response. The client's connection may live longer.
	ctx, cancel := context.WithCancel(context.WithValue(req.Context(), planKey{}, plan{request: request, injection: injection}))
	defer cancel()
	p.proxy.ServeHTTP(w, req.WithContext(ctx))
}

// injectionFor returns the oldest rule that applies to a request, or nil. The caller holds mu.
func (p *Proxy) injectionFor(request Request) *Injection {
	for _, injection := range p.injections {
		if injection.matches(request) && injection.take() {
			return injection
		}
	}
	return nil
}

// filter replaces the body of a watch by one that faults can be injected into.
func (p *Proxy) filter(response *http.Response) error {
	ctx := response.Request.Context()
	plan, ok := ctx.Value(planKey{}).(plan)
	if !ok {
		return errors.New("there is no plan for this request")
	}
	if !plan.request.Watch() || response.StatusCode != http.StatusOK {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if plan.injection == nil {
		plan.injection = p.injectionFor(plan.request) // a rule that was added while the API server handled the request
	}
	stream, body, err := newStream(ctx, plan.request, response, plan.injection)
	if err != nil {
		return err
	}
	response.Body = body
	p.streams[stream] = true
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.streams, stream)
	})
	return nil
}
