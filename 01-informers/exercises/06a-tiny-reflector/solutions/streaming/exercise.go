package reflector

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

var backOff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Cap: 30 * time.Second, Steps: 10}

// Reflect keeps the store equal to the ConfigMaps of the namespace until ctx ends. It calls sleep after a request that fails.
func Reflect(ctx context.Context, client kubernetes.Interface, namespace string, store cache.Store,
	sleep func(ctx context.Context, pause time.Duration),
) {
	version, pauses := "", backOff
	for ctx.Err() == nil {
		options := metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}
		if version == "" {
			options.SendInitialEvents, options.ResourceVersionMatch = new(true), metav1.ResourceVersionMatchNotOlderThan
		}
		watcher, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, options)
		if err == nil {
			pauses = backOff
			version, err = follow(watcher, version, store)
			watcher.Stop()
		}
		switch {
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			version = ""
		case err != nil:
			sleep(ctx, pauses.Step())
		}
	}
}

// follow changes the store until the watch ends, and returns where the next one begins. Without a version the watch begins with
// a list, which a bookmark ends.
func follow(watcher watch.Interface, version string, store cache.Store) (string, error) {
	var list []any
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return version, apierrors.FromObject(event.Object)
		}
		var err error
		switch {
		case version == "" && event.Type == watch.Added:
			list = append(list, object)
			continue
		case version == "":
			err = store.Replace(list, object.ResourceVersion)
		case event.Type == watch.Deleted:
			err = store.Delete(object)
		case event.Type != watch.Bookmark:
			err = store.Add(object)
		}
		if err != nil {
			return version, err
		}
		version = object.ResourceVersion
	}
	return version, nil
}
