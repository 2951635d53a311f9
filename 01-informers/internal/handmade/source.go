package handmade

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// client is what clients for one resource have in common, whatever they call the objects: L is their list.
type client[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Typed lists and watches what a client of a generated clientset does, such as CoreV1().ConfigMaps(namespace).
func Typed[L runtime.Object](resource client[L]) cache.ListerWatcher { return listWatch(resource) }

// Dynamic lists and watches any resource, as *unstructured.Unstructured. An empty namespace is all of them.
func Dynamic(client dynamic.Interface, resource schema.GroupVersionResource, namespace string) cache.ListerWatcher {
	return listWatch(client.Resource(resource).Namespace(namespace))
}

// Metadata lists and watches the metadata of any resource, as *metav1.PartialObjectMetadata: spec, status
// and data stay on the server. An empty namespace is all of them.
func Metadata(client metadata.Interface, resource schema.GroupVersionResource, namespace string) cache.ListerWatcher {
	return listWatch(client.Resource(resource).Namespace(namespace))
}

// listWatch makes the two calls that a reflector needs. A fake client that cannot stream a list says so through
// cache.ToListWatcherWithWatchListSemantics; a real one can.
func listWatch[L runtime.Object](resource client[L]) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, options)
		},
	}, resource)
}

// Labelled lists and watches only what a label selector matches.
func Labelled(inner cache.ListerWatcher, selector string) cache.ListerWatcher {
	lw := cache.ToListerWatcherWithContext(inner)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return lw.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return lw.WatchWithContext(ctx, options)
		},
	}, inner)
}
