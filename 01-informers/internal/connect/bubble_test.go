package connect

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// The tests of the wrappers run in bubbles of testing/synctest: server and client, with client-go's own transport, HTTP/2 and its
// pings, use net.Pipe and a fake clock, and a bubble fails a test that leaves a goroutine behind.

// serve starts an API server of one handler inside a bubble, and returns its configuration.
func serve(t *testing.T, http2 bool, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	listener := newPipeListener()
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listener
	server.EnableHTTP2 = http2
	server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn.(*tls.Conn).NetConn())
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: "https://api", Dial: listener.dial, QPS: -1}
	config.Insecure = true
	if !http2 {
		config.NextProtos = []string{"http/1.1"}
	}
	return config
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipeListener() *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- &mortal{Conn: server}:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close(); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// mortal is a connection that can break without an error: what the server writes is lost.
type mortal struct {
	net.Conn
	dead atomic.Bool
}

func (m *mortal) Write(p []byte) (int, error) {
	if m.dead.Load() {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

type connKey struct{}

// dead breaks the connection of a request.
func dead(req *http.Request) { req.Context().Value(connKey{}).(*mortal).dead.Store(true) }

// carrier is the transport of a client, with the wrappers.
func carrier(t *testing.T, config *rest.Config) http.RoundTripper {
	t.Helper()
	carrier, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(carrier) })
	return carrier
}

// get sends a request and returns the body of the response, which is closed at the end of the test.
func get(ctx context.Context, t *testing.T, carrier http.RoundTripper, path string) (io.ReadCloser, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := carrier.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { response.Body.Close() })
	return response.Body, nil
}
