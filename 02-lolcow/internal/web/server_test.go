package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen soon.
const patience = 10 * time.Second

// serve serves site with limits until the test calls stop, which returns what
// Serve returned.
func serve(t *testing.T, site *Site, limits Limits) (address string, stop func() error) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- Serve(ctx, listener, site, limits, slog.New(slog.DiscardHandler)) }()
	return listener.Addr().String(), func() error {
		cancel()
		select {
		case err := <-result:
			return err
		case <-time.After(patience):
			return errors.New("Serve does not end")
		}
	}
}

// dial connects to the server; whatever the test does ends within patience.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestSlowAndGreedyClientsAreCutOff(t *testing.T) {
	limits := DefaultLimits()
	// Each response has to arrive in this time, also on a busy machine.
	limits.Header = time.Second
	limits.Request = 2 * time.Second
	limits.Idle = time.Second
	limits.Linger = 0
	address, stop := serve(t, newSite(t, "moo"), limits)

	tests := map[string]struct{ send, response string }{
		"a header that never ends":   {"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", ""},
		"nothing at all":             {"", ""},
		"idle after a request":       {"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK"},
		"a body that never comes":    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"},
		"a header of a megabyte":     {"GET / HTTP/1.1\r\nHost: x\r\nX-Big: " + strings.Repeat("x", 1<<20), "HTTP/1.1 431 Request Header Fields Too Large"},
		"something that is not HTTP": {"moo?\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"two responses on one connection": {
			"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, address)
			// The server may close before it has read all: that is its right.
			_, _ = io.WriteString(conn, test.send)
			response, err := io.ReadAll(conn)
			if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
				t.Fatalf("still connected after %s", patience)
			}
			if !strings.HasPrefix(string(response), test.response) {
				t.Errorf("the response is %q, want it to begin with %q", response, test.response)
			}
		})
	}
	if err := stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
}

// isTimeout reports whether the test's own deadline passed.
func isTimeout(err error) bool {
	var netError net.Error
	return errors.As(err, &netError) && netError.Timeout()
}

// While it lingers, the server serves new connections and reports that it is not ready.
func TestNotReadyWhileLingering(t *testing.T) {
	limits := DefaultLimits()
	limits.Linger = patience / 4
	site := newSite(t, "moo")
	address, stop := serve(t, site, limits)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()

	deadline := time.Now().Add(limits.Linger)
	for status := 0; status != http.StatusServiceUnavailable; {
		if time.Now().After(deadline) {
			t.Fatal("/readyz did not turn 503")
		}
		status = get(t, address, "/readyz")
	}
	if status := get(t, address, "/"); status != http.StatusOK {
		t.Errorf("/ responds with %d while lingering, want 200", status)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stopping: %v", err)
	}
}

// get asks for path on a new connection and returns the status.
func get(t *testing.T, address, path string) int {
	t.Helper()
	conn := dial(t, address)
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// A request that is in progress gets its response although the server is stopping.
func TestShutdownFinishesRequestsInFlight(t *testing.T) {
	limits := DefaultLimits()
	limits.Linger = 0
	site := newSite(t, "moo")
	entered, release := make(chan struct{}), make(chan struct{})
	inner := site.handler
	site.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		inner.ServeHTTP(w, r)
	})
	address, stop := serve(t, site, limits)

	status := make(chan int, 1)
	go func() { status <- get(t, address, "/") }()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	expectClosed(t, address)
	close(release)
	if got := <-status; got != http.StatusOK {
		t.Errorf("the request in flight got %d, want 200", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stopping: %v", err)
	}
}

// A request that takes longer than the server may wait is cut off, and Serve
// says so.
func TestShutdownDoesNotWaitForever(t *testing.T) {
	limits := DefaultLimits()
	limits.Linger, limits.Shutdown = 0, 50*time.Millisecond
	site := newSite(t, "moo")
	entered := make(chan struct{})
	site.handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	address, stop := serve(t, site, limits)
	fmt.Fprint(dial(t, address), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	if err := stop(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Serve returned %v, want that the deadline was exceeded", err)
	}
}

// expectClosed waits until the server takes no more connections.
func expectClosed(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatal("the server still takes connections")
}
