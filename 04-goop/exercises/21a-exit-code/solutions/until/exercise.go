package exitcode

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Run creates a Goop, waits until it has ended, deletes it, and returns the exit code.
func Run(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (code int, err error) {
	// The watch begins before there is anything to see.
	w, err := c.Watch(ctx, &v1alpha1.GoopList{}, client.InNamespace(goop.Namespace), client.MatchingFields{metav1.ObjectNameField: goop.Name})
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	if err := c.Create(ctx, goop); err != nil {
		return 0, err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, ignoreGone(c.Delete(after, goop, client.Preconditions{UID: &goop.UID})))
	}()
	_, err = watchtools.UntilWithoutRetry(ctx, w, func(event watch.Event) (bool, error) {
		seen, isGoop := event.Object.(*v1alpha1.Goop)
		switch {
		case !isGoop:
			return false, apierrors.FromObject(event.Object)
		case seen.UID != goop.UID:
			return false, nil
		case event.Type == watch.Deleted:
			return false, errors.New("the Goop was deleted")
		case seen.Status.ExitCode != nil:
			code = int(*seen.Status.ExitCode)
		}
		return seen.Ended(), nil
	})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return 124, nil
	case ctx.Err() != nil:
		return 130, nil
	}
	return code, err
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
