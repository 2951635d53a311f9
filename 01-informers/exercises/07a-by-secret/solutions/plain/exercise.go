package secret

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

const bySecret = "by-secret"

// BySecret adds an index to an informer for Pods. find returns the keys of the Pods that use a Secret.
func BySecret(informer cache.SharedIndexInformer) (find func(namespace, name string) ([]string, error), err error) {
	err = informer.AddIndexers(cache.Indexers{bySecret: func(object any) ([]string, error) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil, nil
		}
		var values []string
		for _, name := range secrets(&pod.Spec) {
			values = append(values, pod.Namespace+"/"+name)
		}
		return values, nil
	}})
	return func(namespace, name string) ([]string, error) {
		return informer.GetIndexer().IndexKeys(bySecret, namespace+"/"+name)
	}, err
}

// secrets are the names of all Secrets in a Pod. One may be there more than once.
func secrets(spec *corev1.PodSpec) []string {
	var names []string
	for _, reference := range spec.ImagePullSecrets {
		names = append(names, reference.Name)
	}
	for _, volume := range spec.Volumes {
		if volume.Secret != nil {
			names = append(names, volume.Secret.SecretName)
		}
		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				if source.Secret != nil {
					names = append(names, source.Secret.Name)
				}
			}
		}
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, variable := range container.Env {
			if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
				names = append(names, variable.ValueFrom.SecretKeyRef.Name)
			}
		}
		for _, source := range container.EnvFrom {
			if source.SecretRef != nil {
				names = append(names, source.SecretRef.Name)
			}
		}
	}
	return names
}
