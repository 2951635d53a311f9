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

// client is what the clients for one resource have in common. L is their list.
type client[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Typed lists and watches with a client of a generated clientset, such as CoreV1().ConfigMaps(namespace).
func Typed[L runtime.Object](resource client[L]) cache.ListerWatcher { return listWatch(resource) }

// Dynamic lists and watches any resource, as *unstructured.Unstructured. An empty namespace means all namespaces.
func Dynamic(client dynamic.Interface, resource schema.GroupVersionResource, namespace string) cache.ListerWatcher {
	return listWatch(client.Resource(resource).Namespace(namespace))
}

// Metadata lists and watches the metadata of any resource, as *metav1.PartialObjectMetadata: the API server sends neither
// spec nor status nor data. An empty namespace means all namespaces.
func Metadata(client metadata.Interface, resource schema.GroupVersionResource, namespace string) cache.ListerWatcher {
	return listWatch(client.Resource(resource).Namespace(namespace))
}

// listWatch has the two calls that a reflector needs. cache.ToListWatcherWithWatchListSemantics is for fake clients that
// cannot stream a list.
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

// Labelled lists and watches only the objects that a label selector matches.
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
