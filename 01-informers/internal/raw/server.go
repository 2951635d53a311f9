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
	// headerTimeout is the longest that a caller may take to say what it wants.
	headerTimeout = 10 * time.Second

	// idleTimeout is how long a connection stays open between two requests. Without it, anyone who reaches the port could
	// keep as many open as the process has file descriptors.
	idleTimeout = 90 * time.Second

	// answerTimeout is the longest that an answer under way may take at the end.
	answerTimeout = time.Second
)

// probes is what the kubelet asks: /healthz, whether to restart the process, and /readyz, whether it counts
// as available.
func probes(watchdog *leaderelection.HealthzAdaptor, synced []cache.DoneChecker) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, request *http.Request) {
		// A leader that has not renewed the lease and has not ended either does not come round by itself.
		answer(w, watchdog.Check(request))
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		for _, checker := range synced {
			if !cache.IsDone(checker) {
				answer(w, fmt.Errorf("not yet synced: %s", checker.Name()))
				return
			}
		}
		answer(w, nil)
	})
	return mux
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// metricsHandler serves the metrics to whom the gate lets through.
func metricsHandler(gate *gate) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", gate.guard(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	return mux
}

// selfSigned is a listener's TLS with a certificate made on the spot, good for a year: it keeps tokens and
// metrics from being read on the way, and does not tell callers whom they speak to. HTTP/1.1 is enough for
// a scrape.
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
	// idle is how long a connection may stay open between two requests.
	idle time.Duration

	group sync.WaitGroup
	stops []func()
}

// start serves at an address, over TLS if there is a configuration for it, until stop. At address 0 it does
// not. It returns when the port is open, or an error why not.
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
		IdleTimeout:       s.idle,
		// What it has to say of single connections, such as a failed handshake.
		ErrorLog:    slog.NewLogLogger(logr.ToSlogHandler(klog.FromContext(ctx)), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	s.group.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serving %s: %w", what, err))
		}
	})
	s.stops = append(s.stops, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
}

// stop ends all servers and returns when they have ended.
func (s *servers) stop() {
	for _, stop := range s.stops {
		stop()
	}
	s.group.Wait()
}
