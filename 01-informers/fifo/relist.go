package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// relist runs an informer on a simulated server. The server lists a@1 and b@2, sends a change of b and 410 Gone, and then
// lists without b. relist returns the notifications of the handler, and the resourceVersions of the store.
func relist(ctx context.Context) []string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lines log
	lists, watches := make(chan runtime.Object, 2), make(chan watch.Interface, 2)
	lists <- list(5, object("a", 1), object("b", 2))
	lists <- list(9, object("a", 1))
	first, second := watch.NewRaceFreeFake(), watch.NewRaceFreeFake()
	watches <- first
	watches <- second

	informer := cache.NewTypedSharedIndexInformer[*corev1.ConfigMap](
		cache.NewSharedIndexInformerWithOptions(server(lists, watches), &corev1.ConfigMap{}, cache.SharedIndexInformerOptions{}))
	lesson.Must(informer.AddTypedEventHandler(handler(&lines)))
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	defer running.Wait()
	defer cancel()

	await := func(notifications int) {
		lesson.Until(ctx, fmt.Sprintf("the handler was notified %d times", notifications), func() bool { return len(lines.All()) >= notifications })
	}
	await(2)
	first.Modify(object("b", 6))
	await(3)
	gone := apierrors.NewResourceExpired("too old resource version").Status()
	first.Error(&gone)
	await(5) // after a back-off of 0.8 to 1.6 s (reflector.go, defaultBackoffInit)
	second.Add(object("z", 10))
	await(6)
	lines.add("the store's resourceVersion: %q", informer.GetStore().LastStoreSyncResourceVersion())
	second.Action(watch.Bookmark, object("", 12))
	lesson.Until(ctx, "the store has the bookmark", func() bool {
		return informer.GetStore().LastStoreSyncResourceVersion() != "10"
	})
	lines.add("after a bookmark, and no other event: %q", informer.GetStore().LastStoreSyncResourceVersion())
	return lines.All()
}

type log struct{ lesson.Record[string] }

func (l *log) add(format string, args ...any) { l.Add(fmt.Sprintf(format, args...)) }

func handler(lines *log) cache.TypedResourceEventHandlerDetailedFuncs[*corev1.ConfigMap] {
	return cache.TypedResourceEventHandlerDetailedFuncs[*corev1.ConfigMap]{
		AddFunc: func(obj *corev1.ConfigMap, isInInitialList bool) {
			lines.add("OnAdd    %s, initial list: %t", short(obj), isInInitialList)
		},
		UpdateFunc: func(before, after *corev1.ConfigMap) {
			lines.add("OnUpdate %s -> %s", short(before), short(after))
		},
		DeleteFunc: func(deleted cache.DeletedObject[*corev1.ConfigMap]) {
			if deleted.FinalStateUnknown != nil {
				lines.add("OnDelete %s, final state unknown; last known state: %s", deleted.GetKey(), short(deleted.OptionalObj))
				return
			}
			lines.add("OnDelete %s", short(deleted.OptionalObj))
		},
	}
}

// server returns the next list for each list, and the next watch for each watch.
func server(lists <-chan runtime.Object, watches <-chan watch.Interface) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) { return next(ctx, lists) },
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) { return next(ctx, watches) },
	}, withoutStreaming{})
}

func next[T any](ctx context.Context, from <-chan T) (T, error) {
	select {
	case one := <-from:
		return one, nil
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// withoutStreaming is a client without streaming lists.
type withoutStreaming struct{}

// IsWatchListSemanticsUnSupported is the method that util/watchlist looks for.
func (withoutStreaming) IsWatchListSemanticsUnSupported() bool { return true }

func list(version int, objects ...*corev1.ConfigMap) *corev1.ConfigMapList {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}}
	for _, obj := range objects {
		list.Items = append(list.Items, *obj)
	}
	return list
}
