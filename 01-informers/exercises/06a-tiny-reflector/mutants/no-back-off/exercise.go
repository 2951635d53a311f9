package reflector

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Reflect keeps the store equal to the ConfigMaps of the namespace until ctx ends. It calls sleep after a request that fails.
func Reflect(ctx context.Context, client kubernetes.Interface, namespace string, store cache.Store,
	sleep func(ctx context.Context, pause time.Duration),
) {
	r := reflector{configMaps: client.CoreV1().ConfigMaps(namespace), store: store}
	for ctx.Err() == nil {
		var err error
		if r.version == "" {
			err = r.list(ctx)
		} else {
			err = r.watch(ctx)
		}
		switch {
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			r.version = ""
		case err != nil:
			sleep(ctx, pause())
		}
	}
}

// pause is that after a failure.
func pause() time.Duration {
	return time.Second + rand.N(time.Second)
}

// reflector is how far the function has seen.
type reflector struct {
	configMaps typedcorev1.ConfigMapInterface
	store      cache.Store
	// version is where the next watch begins. It is empty if a list is due.
	version string
}

func (r *reflector) list(ctx context.Context) error {
	list, err := r.configMaps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var objects []any
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	r.version = list.ResourceVersion
	return r.store.Replace(objects, list.ResourceVersion)
}

// watch changes the store until the watch ends. The error may have come in the stream.
func (r *reflector) watch(ctx context.Context) error {
	watcher, err := r.configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: r.version})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		if event.Type == watch.Deleted {
			err = r.store.Delete(object)
		} else {
			err = r.store.Add(object)
		}
		if err != nil {
			return err
		}
		r.version = object.ResourceVersion
	}
	return nil
}
