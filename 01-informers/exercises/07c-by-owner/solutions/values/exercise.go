package owner

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

const (
	byOwner = "by-owner"
	byUID   = "by-uid"
)

// ByOwner adds an index to each informer. dependents returns the keys of the Secrets of an owner, and orphans those of the Secrets
// that have owners, none of which exists.
func ByOwner(owners, secrets cache.SharedIndexInformer) (
	dependents func(owner *corev1.ConfigMap) ([]string, error), orphans func() ([]string, error), err error,
) {
	if err := secrets.AddIndexers(cache.Indexers{byOwner: ownersOf}); err != nil {
		return nil, nil, err
	}
	if err := owners.AddIndexers(cache.Indexers{byUID: uidOf}); err != nil {
		return nil, nil, err
	}
	dependents = func(owner *corev1.ConfigMap) ([]string, error) {
		return secrets.GetIndexer().IndexKeys(byOwner, string(owner.UID))
	}
	orphans = func() ([]string, error) { return without(owners.GetIndexer(), secrets.GetIndexer()) }
	return dependents, orphans, nil
}

// without returns the keys of the Secrets of owners that are gone, except those that another owner still has.
func without(owners, secrets cache.Indexer) ([]string, error) {
	orphans, others := sets.New[string](), sets.New[string]()
	for _, uid := range secrets.ListIndexFuncValues(byOwner) {
		keys, err := secrets.IndexKeys(byOwner, uid)
		if err != nil {
			return nil, err
		}
		existing, err := owners.IndexKeys(byUID, uid)
		if err != nil {
			return nil, err
		}
		if len(existing) > 0 {
			others.Insert(keys...)
		} else {
			orphans.Insert(keys...)
		}
	}
	return orphans.Difference(others).UnsortedList(), nil
}

func ownersOf(object any) ([]string, error) {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return nil, nil
	}
	var uids []string
	for _, owner := range secret.OwnerReferences {
		uids = append(uids, string(owner.UID))
	}
	return uids, nil
}

func uidOf(object any) ([]string, error) {
	owner, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, nil
	}
	return []string{string(owner.UID)}, nil
}
