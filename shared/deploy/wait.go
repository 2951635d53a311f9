package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
)

// A wait that takes longer than quietWait says what it waits for, and again after each noteInterval.
var (
	quietWait    = 4 * time.Second
	noteInterval = 30 * time.Second
)

const (
	pollInterval = 200 * time.Millisecond
	// callTimeout bounds one request: an API server that does not respond is reported with the request's own error.
	callTimeout = 10 * time.Second
)

// condition is what a wait is for.
type condition struct {
	what  string
	limit time.Duration
	// met reports whether it is so now. An error counts as no, and is reported if it was the last response.
	met func(context.Context) (bool, error)
	// why says what stands in the way, and how that ends; it may be empty.
	why func(context.Context) string
}

// eventually polls until the condition is met, up to its limit. A wait of more than a few seconds says to out what it
// waits for, and why.
func eventually(ctx context.Context, out io.Writer, w condition) error {
	start := time.Now()
	next := start.Add(quietWait)
	for {
		// The limit is not the request's: near its end the client's rate limiter would reject requests, and its words would
		// hide what is wrong.
		call, cancel := context.WithTimeout(ctx, callTimeout)
		met, err := w.met(call)
		cancel()
		now := time.Now()
		switch {
		case met && err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("waiting for %s: %w", w.what, context.Cause(ctx))
		case now.Sub(start) >= w.limit:
			return errors.Join(fmt.Errorf("waiting for %s: given up after %s%s", w.what, w.limit, w.reason(ctx)), err)
		case now.After(next):
			fmt.Fprintf(out, "    waiting for %s, for %s at most%s\n", w.what, w.limit, w.reason(ctx))
			next = now.Add(noteInterval)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
}

func (w condition) reason(ctx context.Context) string {
	if w.why == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if why := w.why(ctx); why != "" {
		return ": " + why
	}
	return ""
}

// isGone understands the responses for an object that is gone, or whose kind is.
func isGone(err error) (bool, error) {
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return true, nil
	}
	return false, err
}

func ignoreGone(err error) error {
	_, err = isGone(err)
	return err
}
