package owner

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

const byOwner = "by-owner"

// ByOwner adds an index to the informer for Secrets. dependents returns the keys of the Secrets of an owner, and orphans those of
// the Secrets that have owners, none of which exists.
func ByOwner(owners, secrets cache.SharedIndexInformer) (
	dependents func(owner *corev1.ConfigMap) ([]string, error), orphans func() ([]string, error), err error,
) {
	err = secrets.AddIndexers(cache.Indexers{byOwner: func(object any) ([]string, error) {
		secret, ok := object.(*corev1.Secret)
		if !ok {
			return nil, nil
		}
		var values []string
		for _, owner := range secret.OwnerReferences {
			values = append(values, string(owner.UID))
		}
		return values, nil
	}})
	dependents = func(owner *corev1.ConfigMap) ([]string, error) {
		return secrets.GetIndexer().IndexKeys(byOwner, string(owner.UID))
	}
	orphans = func() ([]string, error) {
		existing := uids(owners)
		exists := func(owner metav1.OwnerReference) bool { return existing.Has(owner.UID) }
		var keys []string
		for _, object := range secrets.GetStore().List() {
			secret, ok := object.(*corev1.Secret)
			if ok && !slices.ContainsFunc(secret.OwnerReferences, exists) {
				keys = append(keys, secret.Namespace+"/"+secret.Name)
			}
		}
		return keys, nil
	}
	return dependents, orphans, err
}

// uids are those of the owners that exist.
func uids(owners cache.SharedIndexInformer) sets.Set[types.UID] {
	existing := sets.New[types.UID]()
	for _, object := range owners.GetStore().List() {
		if owner, ok := object.(*corev1.ConfigMap); ok {
			existing.Insert(owner.UID)
		}
	}
	return existing
}
