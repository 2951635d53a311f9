package scopedcache

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are those of the manager's cache, and of its client, which reads from the cache.
func Options() (cache.Options, client.Options) {
	ours := labels.SelectorFromSet(labels.Set{"app": "lolcow"})
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}:        {Label: ours},
		&appsv1.Deployment{}: {Label: ours},
	}}, client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
}
