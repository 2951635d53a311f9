package raw

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

const (
	// headerTimeout bounds the headers of a request.
	headerTimeout = 10 * time.Second

	// requestTimeout bounds a whole request with its body, which is read after the response, too. It also ends the context of
	// a request that is still being handled, so it is longer than reviewTimeout.
	requestTimeout = 30 * time.Second

	// idleTimeout bounds the time between two requests on one connection. Without it, any client that reaches the port could
	// keep as many connections open as the process has file descriptors.
	idleTimeout = 90 * time.Second

	// shutdownTimeout bounds the requests under way when the servers are stopped.
	shutdownTimeout = time.Second
)

// probes serves the kubelet: /healthz, whether to restart the process, and /readyz, whether it counts as available.
func probes(watchdog *leaderelection.HealthzAdaptor, synced []cache.DoneChecker) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, request *http.Request) {
		// A leader that neither renews the lease nor ends needs a restart.
		respond(w, watchdog.Check(request))
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		for _, checker := range synced {
			if !cache.IsDone(checker) {
				respond(w, fmt.Errorf("not yet synced: %s", checker.Name()))
				return
			}
		}
		respond(w, nil)
	})
	return mux
}

func respond(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// metricsHandler serves the metrics to callers that the filter authorizes.
func metricsHandler(filter *authFilter) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", filter.wrap(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	return mux
}

// selfSigned returns the TLS configuration of a listener with a new certificate, which is valid for a year. It encrypts tokens
// and metrics, and does not authenticate the server. HTTP/1.1 is enough for a scrape.
func selfSigned() (*tls.Config, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKeyWithOptions(certutil.SelfSignedCertKeyOptions{Host: "localhost"})
	if err != nil {
		return nil, fmt.Errorf("making a certificate for the metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for the metrics: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// servers are the HTTP servers of one run.
type servers struct {
	// fail is called when a server ends by itself.
	fail context.CancelCauseFunc
	// idle and request are usually idleTimeout and requestTimeout.
	idle, request time.Duration

	group sync.WaitGroup
	stops []func()
}

// start serves at an address, over TLS if it has a configuration, until stop. The address 0 turns it off. It returns when the
// port is open, or with an error.
func (s *servers) start(ctx context.Context, what, address string, secure *tls.Config, handler http.Handler) error {
	if address == "0" {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serving %s: %w", what, err)
	}
	klog.FromContext(ctx).Info("Serving", "what", what, "address", listener.Addr().String())
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	s.serve(ctx, what, listener, handler)
	return nil
}

func (s *servers) serve(ctx context.Context, what string, listener net.Listener, handler http.Handler) {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       s.request,
		IdleTimeout:       s.idle,
		// Errors of single connections, such as a failed handshake.
		ErrorLog:    slog.NewLogLogger(logr.ToSlogHandler(klog.FromContext(ctx)), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	s.group.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serving %s: %w", what, err))
		}
	})
	s.stops = append(s.stops, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
}

// stop stops all servers and returns when they have ended.
func (s *servers) stop() {
	for _, stop := range s.stops {
		stop()
	}
	s.group.Wait()
}
