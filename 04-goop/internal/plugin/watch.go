package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

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

// Two times. They are variables so that tests can shorten them.
var (
	// watchFor is how long a watch lasts before it is replaced by another.
	watchFor = 2 * time.Minute

	// watchSlack is how much longer a watch may last if its server does not end it. Its connection may be lost without an
	// error, for example at a proxy.
	watchSlack = 15 * time.Second
)

func init() {
	// Informers log to klog what the plugin reports to the user in one sentence.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

// change is an event of an object of type T, or an error of its watch.
type change[T runtime.Object] struct {
	object  T
	deleted bool
	err     error
}

// feed has the events of objects of type T.
type feed[T runtime.Object] struct {
	changes <-chan change[T]
	synced  <-chan struct{} // closed when the initial list has been sent
}

// watchGoop watches one Goop until the context ends.
func (a *api) watchGoop(ctx context.Context, name string) feed[*v1alpha1.Goop] {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return informer(ctx, &v1alpha1.Goop{}, nil, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			if options.ResourceVersion == "0" {
				// The watch cache may not have the new Goop yet.
				options.ResourceVersion = ""
			}
			return a.goops.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return bounded(ctx, options, a.goops.Watch)
		},
	})
}

// watchPods watches the pods of a Goop's workers, including those of earlier Goops of the same name, until the context
// ends.
func (a *api) watchPods(ctx context.Context, name string) feed[*corev1.Pod] {
	only := podsOf(name)
	pods := a.core.CoreV1().Pods(a.namespace)
	return informer(ctx, &corev1.Pod{}, reduced, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = only
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = only
			return bounded(ctx, options, pods.Watch)
		},
	})
}

// boundedWatch is a watch that ends its context when it is stopped.
type boundedWatch struct {
	watch.Interface
	done context.CancelFunc
}

func (w boundedWatch) Stop() {
	w.Interface.Stop()
	w.done()
}

// bounded starts a watch that ends even if its server does not end it.
func bounded(ctx context.Context, options metav1.ListOptions,
	begin func(context.Context, metav1.ListOptions) (watch.Interface, error),
) (watch.Interface, error) {
	options.TimeoutSeconds = new(int64(watchFor / time.Second))
	ctx, done := context.WithTimeout(ctx, watchFor+watchSlack)
	begun, err := begin(ctx, options)
	if err != nil {
		done()
		return nil, err
	}
	return boundedWatch{begun, done}, nil
}

// podsOf selects the pods of the workers of a Goop.
func podsOf(name string) string {
	return labels.Set{v1alpha1.LabelGoop: name, v1alpha1.LabelRole: v1alpha1.RoleWork}.String()
}

// listPods lists the pods that watchPods watches.
func (a *api) listPods(ctx context.Context, name string) (*corev1.PodList, error) {
	return a.core.CoreV1().Pods(a.namespace).List(ctx, metav1.ListOptions{LabelSelector: podsOf(name)})
}

// informer runs an informer until the context ends, and sends its events. The informer lists again when the watch breaks
// off.
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
		// The informer starts a new watch after these errors; no event is lost.
		if !errors.Is(err, io.EOF) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			send(change[T]{err: err})
		}
	})
	notify := func(object any, deleted bool) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if typed, ok := object.(T); ok {
			send(change[T]{object: typed, deleted: deleted})
		}
	}
	// Neither call fails for an informer that does not run yet.
	registration, _ := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { notify(object, false) },
		UpdateFunc: func(_, object any) { notify(object, false) },
		DeleteFunc: func(object any) { notify(object, true) },
	})
	go informer.RunWithContext(ctx)
	return feed[T]{changes: changes, synced: registration.HasSyncedChecker().Done()}
}

// watchTrouble returns the notice for an informer's error.
func watchTrouble(what string, err error) string {
	return fmt.Sprintf("watching %s fails, and is tried again: %v", what, explained(err))
}
