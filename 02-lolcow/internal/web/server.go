package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits says how long a client may take, and how long the end may take.
type Limits struct {
	Header      time.Duration // from the connection to the end of the request's header
	Request     time.Duration // to the end of the request
	Response    time.Duration // from the end of the header to the end of the response
	Idle        time.Duration // between two requests on one connection
	HeaderBytes int           // size of a request's header

	// Linger is how long the server still serves when it is stopping and no longer
	// ready: it takes a moment until that is known on every node.
	Linger time.Duration
	// Shutdown is how long requests in flight may then still take.
	Shutdown time.Duration
}

// DefaultLimits are generous for a person on a slow phone and short for a client
// that wants to hold connections open. The end takes less than 10 s in all.
func DefaultLimits() Limits {
	return Limits{
		Header:      5 * time.Second,
		Request:     10 * time.Second,
		Response:    10 * time.Second,
		Idle:        60 * time.Second,
		HeaderBytes: 16 << 10,
		Linger:      time.Second,
		Shutdown:    8 * time.Second,
	}
}

// Serve serves requests on listener with site until ctx is done. Then it lets
// the requests in flight finish. It returns nil after an orderly end, and an
// error if it could not serve or if requests had to be cut off.
func Serve(ctx context.Context, listener net.Listener, site *Site, limits Limits, log *slog.Logger) error {
	server := &http.Server{
		Handler:           site,
		ReadHeaderTimeout: limits.Header,
		ReadTimeout:       limits.Request,
		WriteTimeout:      limits.Response,
		IdleTimeout:       limits.Idle,
		MaxHeaderBytes:    limits.HeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}

	log.Info("shutting down", "linger", limits.Linger, "timeout", limits.Shutdown)
	site.Drain()
	server.SetKeepAlivesEnabled(false)
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-time.After(limits.Linger):
	}

	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Shutdown)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		return errors.Join(fmt.Errorf("finishing requests in flight: %w", err), server.Close())
	}
	return nil
}
