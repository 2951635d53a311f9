package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/workbook/04-goop/api/v1alpha1"
)

func init() {
	// Informers log to klog what the user is told in a sentence.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

// change is one thing that happened to an object of type T, or that could not be watched.
type change[T runtime.Object] struct {
	object  T
	deleted bool
	err     error
}

// feed is what is heard of objects of type T.
type feed[T runtime.Object] struct {
	changes  <-chan change[T]
	heardAll <-chan struct{} // closed when all that was there at the beginning has been sent
}

// watchGoop tells of one Goop until the context ends.
func (a *api) watchGoop(ctx context.Context, name string) feed[*v1alpha1.Goop] {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return informer(ctx, &v1alpha1.Goop{}, nil, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return a.goops.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return a.goops.Watch(ctx, options)
		},
	})
}

// watchPods tells of the pods of the workers of a Goop, and of others that had its name, until the context ends.
func (a *api) watchPods(ctx context.Context, name string) feed[*corev1.Pod] {
	only := labels.Set{v1alpha1.LabelGoop: name, v1alpha1.LabelRole: v1alpha1.RoleWork}.String()
	pods := a.core.CoreV1().Pods(a.namespace)
	return informer(ctx, &corev1.Pod{}, reduced, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = only
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = only
			return pods.Watch(ctx, options)
		},
	})
}

// informer runs an informer until the context ends, and sends what it hears of. It lists again by itself whenever the
// watch breaks off.
func informer[T runtime.Object](
	ctx context.Context, example T, transform cache.TransformFunc, lw *cache.ListWatch,
) feed[T] {
	changes := make(chan change[T])
	send := func(c change[T]) {
		select {
		case changes <- c:
		case <-ctx.Done():
		}
	}
	informer := cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{})
	if transform != nil {
		_ = informer.SetTransform(transform)
	}
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		// An old watch that ended is begun anew; nothing is lost by it.
		if !errors.Is(err, io.EOF) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			send(change[T]{err: err})
		}
	})
	heard := func(object any, deleted bool) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if typed, ok := object.(T); ok {
			send(change[T]{object: typed, deleted: deleted})
		}
	}
	// Neither fails for an informer that does not run yet.
	registration, _ := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { heard(object, false) },
		UpdateFunc: func(_, object any) { heard(object, false) },
		DeleteFunc: func(object any) { heard(object, true) },
	})
	go informer.RunWithContext(ctx)
	return feed[T]{changes: changes, heardAll: registration.HasSyncedChecker().Done()}
}

// watchTrouble says what an informer's error means.
func watchTrouble(what string, err error) string {
	return fmt.Sprintf("watching %s fails, and is tried again: %v", what, explained(err))
}
