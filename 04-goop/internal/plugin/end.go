package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// endingWithin limits the time of all requests that end a Goop together. It is a variable so that tests can shorten it.
var endingWithin = 2 * requestTimeout

// end ends the work, and retries transient errors. The first signal does not interrupt it; a second one does.
func (a *app) end(ctx context.Context, r *runFlags, api *api, goop *v1alpha1.Goop, why error) (did string, err error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), endingWithin)
	defer done()
	for try := 1; ; try++ {
		did, err = r.end(ctx, api, goop, why)
		// client-go renews a rejected token for the next request, which may then be permitted.
		expired := apierrors.IsUnauthorized(err) && try < maxTries
		if err == nil || isRejection(err) && !expired {
			return did, err
		}
		if try == 1 {
			a.console.say("%v; it is tried again", err)
		}
		select {
		case <-a.clock.After(time.Duration(try) * createPause):
		case <-ctx.Done():
			return did, err
		}
	}
}

// end deletes or suspends the Goop if the flags require it, and returns a message that says which. The argument why is
// the reason why the program ends before the work has ended, or nil.
func (r *runFlags) end(ctx context.Context, api *api, goop *v1alpha1.Goop, why error) (did string, err error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	switch {
	case errors.Is(why, errDeleted) && api.isEnding(ctx, goop):
		return "", nil
	case r.keep && (why == nil || errors.Is(why, errRejected) || api.hasEnded(ctx, goop)):
		return "", nil
	case r.keep:
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"suspend":true}}`, goop.UID)
		_, err = api.goops.Patch(ctx, goop.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		did = fmt.Sprintf("the Goop %s is suspended, which ends its workers, and kept", goop.Name)
	default:
		err = api.goops.Delete(ctx, goop.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(goop.UID))})
		did = fmt.Sprintf("the Goop %s is deleted, which ends its workers", goop.Name)
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case (apierrors.IsConflict(err) || apierrors.IsInvalid(err)) && api.isGone(ctx, goop):
		// If the uid differs, a deletion fails with Conflict, and a patch with Invalid.
		return "", nil
	case err != nil:
		return "", fmt.Errorf("ending the Goop %s: %w", goop.Name, err)
	case why == nil:
		return "", nil
	}
	return did, nil
}
