package secret

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

const bySecret = "by-secret"

// BySecret adds an index to an informer for Pods. find returns the keys of the Pods that use a Secret.
func BySecret(informer cache.SharedIndexInformer) (find func(namespace, name string) ([]string, error), err error) {
	index := func(pod *corev1.Pod) ([]string, error) {
		values := sets.New[string]()
		visitSecrets(&pod.Spec, func(name string) {
			values.Insert(types.NamespacedName{Namespace: pod.Namespace, Name: name}.String())
		})
		return values.UnsortedList(), nil
	}
	err = informer.AddIndexers(cache.TypedIndexersToIndexers(cache.TypedIndexers[*corev1.Pod]{bySecret: index}))
	return func(namespace, name string) ([]string, error) {
		return informer.GetIndexer().IndexKeys(bySecret, types.NamespacedName{Namespace: namespace, Name: name}.String())
	}, err
}

// visitSecrets calls visit for each name of a Secret in the Pod.
func visitSecrets(spec *corev1.PodSpec, visit func(name string)) {
	for _, reference := range spec.ImagePullSecrets {
		visit(reference.Name)
	}
	for _, volume := range spec.Volumes {
		if volume.Secret != nil {
			visit(volume.Secret.SecretName)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				visit(source.Secret.Name)
			}
		}
	}
	for i := range spec.InitContainers {
		visitContainer(&spec.InitContainers[i], visit)
	}
	for i := range spec.Containers {
		visitContainer(&spec.Containers[i], visit)
	}
}

func visitContainer(container *corev1.Container, visit func(name string)) {
	for _, variable := range container.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			visit(variable.ValueFrom.SecretKeyRef.Name)
		}
	}
	for _, source := range container.EnvFrom {
		if source.SecretRef != nil {
			visit(source.SecretRef.Name)
		}
	}
}
