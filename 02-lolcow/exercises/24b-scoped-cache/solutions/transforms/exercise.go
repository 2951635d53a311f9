package scopedcache

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are those of the manager's cache, and of its client, which reads from the cache.
func Options() (cache.Options, client.Options) {
	return cache.Options{DefaultTransform: reduce}, client.Options{
		Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}},
	}
}

// reduce keeps of what is another's who it is, and whose.
func reduce(in any) (any, error) {
	object, ok := in.(client.Object)
	if !ok || object.GetLabels()["app"] == "lolcow" {
		return in, nil
	}
	identity := metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Labels: object.GetLabels(), OwnerReferences: object.GetOwnerReferences(),
	}
	switch object.(type) {
	case *corev1.Pod:
		return &corev1.Pod{ObjectMeta: identity}, nil
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: identity}, nil
	}
	return in, nil
}
