package plugin

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

const (
	// requestTimeout limits requests that are sent even after a signal.
	requestTimeout = 30 * time.Second

	// createPause is the pause between a first request with an unclear result and the second one. Each further pause is
	// longer.
	createPause = 500 * time.Millisecond

	// createWithin limits the time of all these requests together.
	createWithin = 2 * requestTimeout

	// nameLength is the number of random characters in a name. Each has 5 bits, so that names are unique in practice.
	nameLength = 10
)

// newName returns the name of a new Goop. The client chooses the name, not the API server. So the client knows it even if
// the response to the creation is lost, and a repeated request cannot create a second Goop.
func newName() string { return "run-" + strings.ToLower(rand.Text()[:nameLength]) }

// create creates the Goop, and looks it up if the result of the request is unclear. A signal does not interrupt a
// request, because the Goop could be left behind. After a signal no further request to create it is sent; if the Goop
// does not exist then, the error is the signal.
func (a *app) create(work context.Context, api *api, goop *v1alpha1.Goop) (*v1alpha1.Goop, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(work), createWithin)
	defer done()
	var sent atomic.Bool
	var unclear error
	for try := 1; ; try++ {
		created, err := api.createUnlessCancelled(work, ctx, goop, &sent)
		if err == nil {
			return created, nil
		}
		rejected := isRejection(err) || !sent.Load()
		unclear = firstUnclear(unclear, err, rejected)
		if unclear == nil {
			return nil, err
		}
		found, lookup := api.get(ctx, goop.Name)
		switch {
		case lookup == nil:
			return found, nil
		case apierrors.IsNotFound(lookup) && work.Err() != nil:
			return nil, context.Cause(work)
		case apierrors.IsNotFound(lookup) && (rejected || try == maxTries):
			return nil, err
		case try == maxTries || ctx.Err() != nil:
			a.console.say("the Goop %s may have been created: %s", goop.Name, a.hint(api, "cancel", goop.Name))
			return nil, unclear
		}
		<-a.clock.After(time.Duration(try) * createPause)
	}
}

// firstUnclear returns the error of the first request that may have taken effect.
func firstUnclear(unclear, err error, rejected bool) error {
	if unclear == nil && (!rejected || apierrors.IsAlreadyExists(err)) {
		return err
	}
	return unclear
}

// createUnlessCancelled sends a request, unless the work was cancelled.
func (a *api) createUnlessCancelled(work, ctx context.Context, goop *v1alpha1.Goop, sent *atomic.Bool) (*v1alpha1.Goop, error) {
	if err := context.Cause(work); err != nil {
		return nil, err
	}
	return a.create(ctx, goop, sent)
}

// create sends one request. It sets sent if the request may have reached the API server.
func (a *api) create(ctx context.Context, goop *v1alpha1.Goop, sent *atomic.Bool) (*v1alpha1.Goop, error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	return a.goops.Create(ctx, goop, metav1.CreateOptions{})
}

func (a *api) get(ctx context.Context, name string) (*v1alpha1.Goop, error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	return a.goops.Get(ctx, name, metav1.GetOptions{})
}

// hasEnded reports whether the work of a Goop has ended.
func (a *api) hasEnded(ctx context.Context, goop *v1alpha1.Goop) bool {
	live, err := a.get(ctx, goop.Name)
	return err == nil && live.UID == goop.UID && live.Ended()
}

// isGone reports whether a Goop was deleted. Another Goop may have its name.
func (a *api) isGone(ctx context.Context, goop *v1alpha1.Goop) bool {
	live, err := a.get(ctx, goop.Name)
	return apierrors.IsNotFound(err) || err == nil && live.UID != goop.UID
}

// isEnding reports whether a Goop was deleted or is being deleted.
func (a *api) isEnding(ctx context.Context, goop *v1alpha1.Goop) bool {
	live, err := a.get(ctx, goop.Name)
	return apierrors.IsNotFound(err) || err == nil && (live.UID != goop.UID || live.DeletionTimestamp != nil)
}

// isRejection reports whether the API server has rejected a request. An internal error or a time-out may be returned
// after the request took effect, and with too many requests a retry may succeed.
func isRejection(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}
