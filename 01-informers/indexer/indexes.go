package main

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// The names of the indexes.
const (
	byNode  = "by-node"
	byApp   = "by-app"
	byOwner = "by-owner"
)

// indexers returns the indexes by their names. The functions get a Pod, and panic for an object of another type.
// AddTypedIndexers adds them to an informer. NewIndexer needs them converted, by TypedIndexersToIndexers.
func indexers() cache.TypedIndexers[*corev1.Pod] {
	return cache.TypedIndexers[*corev1.Pod]{
		cache.NamespaceIndex: func(pod *corev1.Pod) ([]string, error) { return cache.MetaNamespaceIndexFunc(pod) },
		byNode:               nodeOf,
		byApp:                appOf,
		byOwner:              ownerOf,
	}
}

// nodeOf returns no value for a Pod that is not scheduled, so that the index has no entry for it. An empty
// string would be a value, and a lookup of it would return all of these Pods.
func nodeOf(pod *corev1.Pod) ([]string, error) {
	if pod.Spec.NodeName == "" {
		return nil, nil
	}
	return []string{pod.Spec.NodeName}, nil
}

// appOf indexes one label. Listers do not use this index: see the lesson lister.
func appOf(pod *corev1.Pod) ([]string, error) {
	if app, ok := pod.Labels["app"]; ok {
		return []string{app}, nil
	}
	return nil, nil
}

// ownerOf indexes the dependents of an object by its uid. By name, a lookup would also return the dependents
// of a deleted object of the same name. A Pod with several owners is found under several values.
func ownerOf(pod *corev1.Pod) ([]string, error) {
	owners := make([]string, len(pod.OwnerReferences))
	for i, owner := range pod.OwnerReferences {
		owners[i] = string(owner.UID)
	}
	return owners, nil
}

var errNoOwner = errors.New("this Pod has no owner")

// ownerOrError has a mistake: it returns an error for an object that has no value.
func ownerOrError(pod *corev1.Pod) ([]string, error) {
	if len(pod.OwnerReferences) == 0 {
		return nil, errNoOwner
	}
	return ownerOf(pod)
}

// newIndexer returns a store like that of an informer, with these Pods.
func newIndexer(pods ...*corev1.Pod) cache.Indexer {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.TypedIndexersToIndexers(indexers()))
	for _, pod := range pods {
		lesson.Check(indexer.Add(pod))
	}
	return indexer
}

func pod(namespace, name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func onNode(node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = node }
}

func withApp(app string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": app} }
}

func ownedBy(uids ...types.UID) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, uid := range uids {
			pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{UID: uid})
		}
	}
}

// shop returns Pods with different values for each index.
func shop() []*corev1.Pod {
	return []*corev1.Pod{
		pod("shop", "web-0", onNode("node-1"), withApp("web"), ownedBy("uid-web")),
		pod("shop", "web-1", onNode("node-2"), withApp("web"), ownedBy("uid-web")),
		pod("shop", "db-0", onNode("node-1"), withApp("db"), ownedBy("uid-db", "uid-backup")),
		pod("test", "web-0", onNode("node-2"), withApp("web")),
		pod("test", "pending"),
	}
}
