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
	// createPause is how long after a first request without a clear result the second comes. It grows with each.
	createPause = 500 * time.Millisecond

	// createWithin bounds all requests together.
	createWithin = 2 * requestTimeout

	// nameLength is how many random characters a name has, of 5 bits each: no two Goops have the same.
	nameLength = 10
)

// newName is that of a Goop. The client chooses it, and not the API server: so the name is known where the response to
// the creation is lost, and a second request cannot create a second Goop.
func newName() string { return "run-" + strings.ToLower(rand.Text()[:nameLength]) }

// create creates the Goop, and looks it up where the result of that is not clear. A signal does not cut it short: the
// Goop would be left behind.
func (a *app) create(ctx context.Context, api *api, goop *v1alpha1.Goop) (*v1alpha1.Goop, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), createWithin)
	defer done()
	var sent atomic.Bool
	var unclear error // of the first request that may have taken effect
	for try := 1; ; try++ {
		created, err := api.create(ctx, goop, &sent)
		if err == nil {
			return created, nil
		}
		rejected := isRejection(err) || !sent.Load()
		if unclear == nil && (!rejected || apierrors.IsAlreadyExists(err)) {
			unclear = err
		}
		if unclear == nil {
			return nil, err
		}
		found, lookup := api.get(ctx, goop.Name)
		switch {
		case lookup == nil:
			return found, nil
		case apierrors.IsNotFound(lookup) && (rejected || try == maxTries):
			return nil, err
		case try == maxTries || ctx.Err() != nil:
			a.console.say("the Goop %s may have been created: %s", goop.Name, a.hint(api, "cancel", goop.Name))
			return nil, unclear
		}
		<-a.clock.After(time.Duration(try) * createPause)
	}
}

// create sends one request. It sets sent if that may have reached the API server.
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

// isGone tells whether a Goop was deleted; its name may be another's by now.
func (a *api) isGone(ctx context.Context, goop *v1alpha1.Goop) bool {
	live, err := a.get(ctx, goop.Name)
	return apierrors.IsNotFound(err) || err == nil && live.UID != goop.UID
}

// isRejection tells whether the API server has decided against a request. An error of its own, or a time-out, may
// come after the request took effect.
func isRejection(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout
}
