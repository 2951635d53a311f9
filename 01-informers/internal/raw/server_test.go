package raw

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"

	"example.com/workbook/01-informers/internal/testserver"
)

// part is a cache.DoneChecker.
type part struct {
	name string
	done chan struct{}
}

func (p part) Name() string          { return p.name }
func (p part) Done() <-chan struct{} { return p.done }

func TestProbes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	caches, handlers := part{"caches", make(chan struct{})}, part{"handlers", make(chan struct{})}
	handler := probes(leaderelection.NewLeaderHealthzAdaptor(time.Second), []cache.DoneChecker{caches, handlers})
	g.Expect(get(t, handler, "/healthz", "").Code).To(Equal(http.StatusOK))
	response := get(t, handler, "/readyz", "")
	g.Expect(response.Code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(response.Body.String()).To(Equal("not yet synced: caches\n"))
	close(caches.done)
	g.Expect(get(t, handler, "/readyz", "").Body.String()).To(Equal("not yet synced: handlers\n"))
	close(handlers.done)
	g.Expect(get(t, handler, "/readyz", "").Code).To(Equal(http.StatusOK))
	g.Expect(get(t, handler, "/other", "").Code).To(Equal(http.StatusNotFound))
}

// A caller without credentials is rejected, and its connection is closed: also if it announces a body and never sends it,
// because the server reads what a handler has left of a request.
func TestConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header        string
		idle, request time.Duration
	}{
		"between two requests": {"", 50 * time.Millisecond, 0},
		"without the body":     {"Content-Length: 100\r\n", time.Minute, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			s := &servers{fail: func(err error) { t.Error("failed:", err) }, idle: test.idle, request: test.request}
			defer s.stop()
			address := testserver.FreeAddress(t)
			g.Expect(s.start(t.Context(), "test", address, nil, http.NotFoundHandler())).To(Succeed())

			connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			g.Expect(err).NotTo(HaveOccurred())
			defer connection.Close()
			_, err = io.WriteString(connection, "GET / HTTP/1.1\r\nHost: test\r\n"+test.header+"\r\n")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(connection.SetReadDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
			response, err := io.ReadAll(connection)
			g.Expect(err).NotTo(HaveOccurred(), "the server has to close it")
			g.Expect(string(response)).To(ContainSubstring("404 Not Found"))
		})
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	s := &servers{fail: func(err error) { t.Error("failed:", err) }}
	address := testserver.FreeAddress(t)
	secure, err := selfSigned()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.start(t.Context(), "test", address, secure, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-finish
		respond(w, nil)
	}))).To(Succeed())
	g.Expect(s.start(t.Context(), "test", address, nil, nil)).To(MatchError(ContainSubstring("serving test: listen tcp " + address)))
	g.Expect(s.start(t.Context(), "test", "0", nil, nil)).To(Succeed(), "turned off")

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	codes := make(chan int, 1)
	go func() {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, nil)
		if response, err := client.Do(request); err == nil {
			codes <- response.StatusCode
			_ = response.Body.Close()
		}
		close(codes)
	}()
	<-begun
	stopped := make(chan struct{})
	go func() {
		s.stop()
		close(stopped)
	}()
	close(finish)
	g.Eventually(stopped).Should(BeClosed())
	g.Expect(<-codes).To(Equal(http.StatusOK), "a request under way gets its response")
}

// A request that takes for ever does not delay the shutdown.
func TestServersStopInTime(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	begun := make(chan struct{})
	s := &servers{fail: func(err error) { t.Error("failed:", err) }}
	address := testserver.FreeAddress(t)
	g.Expect(s.start(t.Context(), "test", address, nil, http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		close(begun)
		<-request.Context().Done()
	}))).To(Succeed())
	go func() {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-begun
	stopped := make(chan struct{})
	go func() {
		s.stop()
		close(stopped)
	}()
	g.Eventually(stopped).WithTimeout(10 * shutdownTimeout).Should(BeClosed())
}

// A server that fails ends the run with its error.
func TestServerThatFails(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx, fail := context.WithCancelCause(t.Context())
	broken := httptest.NewUnstartedServer(nil)
	s := &servers{fail: fail}
	s.serve(ctx, "test", broken.Listener, http.NotFoundHandler())
	g.Expect(broken.Listener.Close()).To(Succeed())
	g.Eventually(ctx.Done()).Should(BeClosed())
	g.Expect(context.Cause(ctx)).To(MatchError(HavePrefix("serving test: ")))
	g.Expect(failure(t.Context(), ctx)).To(MatchError(context.Cause(ctx)))
	g.Expect(failure(ctx, ctx)).To(Succeed(), "a graceful shutdown")
}
