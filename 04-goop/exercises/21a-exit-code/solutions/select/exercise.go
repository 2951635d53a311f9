package exitcode

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Run creates a Goop, waits until it has ended, deletes it, and returns the exit code.
func Run(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (int, error) {
	if err := c.Create(ctx, goop); err != nil {
		return 0, err
	}
	code, err := wait(ctx, c, goop)
	// With the context the watch ends, too, and its error may be the first to say so.
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		code, err = 124, nil
	case ctx.Err() != nil:
		code, err = 130, nil
	}
	if err != nil {
		return 0, err
	}
	return code, remove(ctx, c, goop)
}

// wait returns the exit code of a Goop that has ended.
func wait(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (int, error) {
	w, err := c.Watch(ctx, &v1alpha1.GoopList{}, client.InNamespace(goop.Namespace), client.MatchingFields{metav1.ObjectNameField: goop.Name},
		// From where the Goop was created: no event can be missed.
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: goop.ResourceVersion}})
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case event, open := <-w.ResultChan():
			if !open {
				return 0, errors.New("the watch has ended")
			}
			seen, isGoop := event.Object.(*v1alpha1.Goop)
			switch {
			case !isGoop:
				return 0, apierrors.FromObject(event.Object)
			case event.Type == watch.Deleted || seen.UID != goop.UID:
				return 0, errors.New("the Goop was deleted")
			case seen.Ended():
				return int(ptr.Deref(seen.Status.ExitCode, 0)), nil
			}
		}
	}
}

// remove deletes this Goop and no other one, also if the context has ended.
func remove(ctx context.Context, c client.Client, goop *v1alpha1.Goop) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := c.Delete(ctx, goop, client.Preconditions{UID: &goop.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
