package survive

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Follow calls handle for each ConfigMap of the namespace, then for each change, until ctx ends.
func Follow(ctx context.Context, client kubernetes.Interface, namespace string,
	handle func(event watch.EventType, object *corev1.ConfigMap),
) error {
	f := follower{configMaps: client.CoreV1().ConfigMaps(namespace), handle: handle, known: map[string]*corev1.ConfigMap{}}
	for ctx.Err() == nil {
		var err error
		if f.version == "" {
			err = f.list(ctx)
		} else {
			err = f.watch(ctx)
		}
		if err != nil {
			f.version = ""
			pause(ctx)
		}
	}
	return nil
}

// follower is how far the function has seen.
type follower struct {
	configMaps typedcorev1.ConfigMapInterface
	handle     func(event watch.EventType, object *corev1.ConfigMap)
	known      map[string]*corev1.ConfigMap
	// version is where the next watch begins. It is empty if a list is due.
	version string
}

// list reports how the list differs from what is known.
func (f *follower) list(ctx context.Context) error {
	list, err := f.configMaps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	gone := f.known
	f.known = map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		object := &list.Items[i]
		before := gone[object.Name]
		delete(gone, object.Name)
		f.known[object.Name] = object
		switch {
		case before == nil:
			f.handle(watch.Added, object)
		case before.ResourceVersion != object.ResourceVersion:
			f.handle(watch.Modified, object)
		}
	}
	for _, object := range gone {
		f.handle(watch.Deleted, object)
	}
	f.version = list.ResourceVersion
	return nil
}

// watch reports changes until the watch ends. The error may have come in the stream.
func (f *follower) watch(ctx context.Context) error {
	watcher, err := f.configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: f.version})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		f.version = object.ResourceVersion
		if event.Type == watch.Deleted {
			delete(f.known, object.Name)
		} else {
			f.known[object.Name] = object
		}
		f.handle(event.Type, object)
	}
	return nil
}

// pause waits a moment, or until ctx ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}
