package brokenwatch

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

var errDeleted = errors.New("the Goop was deleted")

// pause is how long it waits after a watch has ended.
const pause = 200 * time.Millisecond

// Wait waits until the Goop has ended, and returns its exit code.
func Wait(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (int, error) {
	for {
		seen, err := round(ctx, c, goop)
		switch {
		case errors.Is(err, errDeleted) || apierrors.IsForbidden(err):
			return 0, err
		case seen != nil:
			return int(ptr.Deref(seen.Status.ExitCode, 0)), nil
		}
		// Any other error may be one of this moment.
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// round lists once, and watches once. It returns the Goop if that has ended.
func round(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (*v1alpha1.Goop, error) {
	one := []client.ListOption{client.InNamespace(goop.Namespace), client.MatchingFields{metav1.ObjectNameField: goop.Name}}
	var list v1alpha1.GoopList
	if err := c.List(ctx, &list, one...); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 || list.Items[0].UID != goop.UID {
		return nil, errDeleted
	}
	if list.Items[0].Ended() {
		return &list.Items[0], nil
	}
	w, err := c.Watch(ctx, &v1alpha1.GoopList{}, append(one, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		seen, isGoop := event.Object.(*v1alpha1.Goop)
		switch {
		case event.Type == watch.Error || !isGoop:
			return nil, nil
		case event.Type == watch.Deleted || seen.UID != goop.UID:
			return nil, errDeleted
		case seen.Ended():
			return seen, nil
		}
	}
	return nil, nil
}
