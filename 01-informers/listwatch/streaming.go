package main

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// streaming requests a streaming list: a list and the watch after it, in one request. It needs all three options. The
// server rejects sendInitialEvents without resourceVersionMatch, and it marks the end of the list with a bookmark, which
// it only sends to clients that allow bookmarks.
var streaming = metav1.ListOptions{
	SendInitialEvents:    new(true),
	ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	AllowWatchBookmarks:  true,
}

func (o *observer) stream(ctx context.Context) {
	o.Printf("6. The streaming list\n")
	w := lesson.Must(o.pods.Watch(ctx, streaming))
	defer w.Stop()
	list := mustReceive(ctx, w, 1)
	for list[len(list)-1].eventType != watch.Bookmark {
		list = append(list, mustReceive(ctx, w, 1)...)
	}
	const initialEventsEnd = metav1.InitialEventsAnnotationKey
	o.Printf("   watched: %s\n", list)
	o.Printf("   the bookmark's annotation %s is true: %t\n", initialEventsEnd, list[len(list)-1].GetAnnotations()[initialEventsEnd] == "true")
	o.DeletePods(ctx, "a")
	o.Printf("   then, in the same watch: %s\n", mustReceive(ctx, w, 2))
	o.PrintRequests(o.requests.Take())
	o.Printf("   One request lists and watches. The bookmark marks the end of the list and has its resourceVersion.\n\n")
}

// asFunctions makes the two calls through cache.ListWatch, the form in which reflectors and informers get them. Its
// fields ListFunc and WatchFunc, without a context, are deprecated, and so are the methods List and Watch.
func (o *observer) asFunctions(ctx context.Context) {
	o.Printf("7. The same as a pair of functions\n")
	var pair cache.ListerWatcherWithContext = &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return o.pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return o.pods.Watch(ctx, options)
		},
	}
	list := lesson.Must(pair.ListWithContext(ctx, metav1.ListOptions{}))
	// A reflector finds the resourceVersion in the same way, for lists of every kind.
	version := lesson.Must(apimeta.ListAccessor(list)).GetResourceVersion()
	w := lesson.Must(pair.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: version}))
	defer w.Stop()
	o.CreatePods(ctx, "h")
	o.Printf("   %T, then %s\n", list, mustReceive(ctx, w, 1))
	o.PrintRequests(o.requests.Take())
	o.Printf("   A reflector calls such a pair of functions, so it works with every kind.\n")
}
