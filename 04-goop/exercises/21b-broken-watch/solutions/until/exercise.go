package brokenwatch

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

var errDeleted = errors.New("the Goop was deleted")

// Wait waits until the Goop has ended, and returns its exit code.
func Wait(ctx context.Context, c client.WithWatch, goop *v1alpha1.Goop) (int, error) {
	options := func(raw metav1.ListOptions) []client.ListOption {
		return []client.ListOption{
			&client.ListOptions{Raw: &raw}, client.InNamespace(goop.Namespace), client.MatchingFields{metav1.ObjectNameField: goop.Name},
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.GoopList{}
			return list, c.List(ctx, list, options(raw)...)
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, &v1alpha1.GoopList{}, options(raw)...)
		},
	}
	exists := func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return false, errDeleted
		}
		return false, nil
	}
	event, err := watchtools.UntilWithSync(ctx, lw, &v1alpha1.Goop{}, exists, func(event watch.Event) (bool, error) {
		seen, isGoop := event.Object.(*v1alpha1.Goop)
		if event.Type == watch.Deleted || !isGoop || seen.UID != goop.UID {
			return false, errDeleted
		}
		return seen.Ended(), nil
	})
	if err != nil {
		return 0, err
	}
	return int(ptr.Deref(event.Object.(*v1alpha1.Goop).Status.ExitCode, 0)), nil
}
