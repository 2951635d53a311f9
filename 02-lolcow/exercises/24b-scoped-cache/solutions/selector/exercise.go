package scopedcache

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are those of the manager's cache, and of its client, which reads from the cache.
func Options() (cache.Options, client.Options) {
	ours := labels.SelectorFromSet(labels.Set{"app": "lolcow"})
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}:        {Label: ours},
		&appsv1.Deployment{}: {Transform: reduce},
	}}, client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
}

// reduce keeps of a Deployment that is another's who it is, and whose.
func reduce(in any) (any, error) {
	deployment, ok := in.(*appsv1.Deployment)
	if !ok || deployment.Labels["app"] == "lolcow" {
		return in, nil
	}
	return &appsv1.Deployment{TypeMeta: deployment.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: deployment.Name, Namespace: deployment.Namespace, UID: deployment.UID, ResourceVersion: deployment.ResourceVersion,
		Labels: deployment.Labels, OwnerReferences: deployment.OwnerReferences,
	}}, nil
}
