package main

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// streamed asks for a list and the watch after it in one request, a watch-list. All three options are
// needed: the server refuses sendInitialEvents without resourceVersionMatch, and sends no bookmark, and so
// no end of the list, to a client that does not allow bookmarks.
var streamed = metav1.ListOptions{
	SendInitialEvents:    new(true),
	ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	AllowWatchBookmarks:  true,
}

func (o *observer) stream(ctx context.Context) error {
	o.Printf("6. The list as a stream\n")
	w, err := o.pods.Watch(ctx, streamed)
	if err != nil {
		return err
	}
	defer w.Stop()
	var list events
	for len(list) == 0 || list[len(list)-1].kind != watch.Bookmark {
		next, err := take(ctx, w, 1)
		if err != nil {
			return err
		}
		list = append(list, next...)
	}
	o.Printf("   watched: %s\n", list)
	o.Printf("   the bookmark's annotation %s is true: %t\n", metav1.InitialEventsAnnotationKey, list[len(list)-1].initialEventsEnd)
	if err := o.DeletePods(ctx, "a"); err != nil {
		return err
	}
	change, err := take(ctx, w, 2)
	if err != nil {
		return err
	}
	o.Printf("   then, on the same connection: %s\n", change)
	o.told()
	o.Printf("   One request is list and watch. The bookmark says where the list ends, and its version.\n\n")
	return nil
}

// asFunctions makes the two calls by way of cache.ListWatch, which is how reflectors and informers are
// given them. Its fields ListFunc and WatchFunc, which take no context, are what these two replace; of the
// methods, List and Watch are deprecated for ListWithContext and WatchWithContext.
func (o *observer) asFunctions(ctx context.Context) error {
	o.Printf("7. The same as a pair of functions\n")
	var pair cache.ListerWatcherWithContext = &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return o.pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return o.pods.Watch(ctx, options)
		},
	}
	list, err := pair.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	// Whatever the kind of the list: apimeta.ListAccessor is how a reflector finds its version.
	listed, err := apimeta.ListAccessor(list)
	if err != nil {
		return err
	}
	w, err := pair.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: listed.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := o.CreatePods(ctx, "h"); err != nil {
		return err
	}
	seen, err := take(ctx, w, 1)
	if err != nil {
		return err
	}
	o.Printf("   %T, then %s\n", list, seen)
	o.told()
	o.Printf("   A reflector is given such a pair, and the kind no longer matters to it.\n")
	return nil
}
