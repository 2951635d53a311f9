package main

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// The names of the indexes. A name is only a string that both sides must agree on.
const (
	byNode  = "by-node"
	byApp   = "by-app"
	byOwner = "by-owner"
)

// indexers are typed: a function that is given another type than it expects panics. An informer takes them
// as they are (AddTypedIndexers); NewIndexer takes them through TypedIndexersToIndexers.
func indexers() cache.TypedIndexers[*corev1.Pod] {
	return cache.TypedIndexers[*corev1.Pod]{
		cache.NamespaceIndex: func(pod *corev1.Pod) ([]string, error) { return cache.MetaNamespaceIndexFunc(pod) },
		byNode:               nodeOf,
		byApp:                appOf,
		byOwner:              ownerOf,
	}
}

// nodeOf leaves out pods that are on no node: no value means no entry. An empty string would be a value,
// under which all of them would be found.
func nodeOf(pod *corev1.Pod) ([]string, error) {
	if pod.Spec.NodeName == "" {
		return nil, nil
	}
	return []string{pod.Spec.NodeName}, nil
}

// appOf makes one label of all labels a look-up. Listers do not use it: see the lesson lister.
func appOf(pod *corev1.Pod) ([]string, error) {
	if app, ok := pod.Labels["app"]; ok {
		return []string{app}, nil
	}
	return nil, nil
}

// ownerOf finds the children of an object by its uid: by name, the children of a namesake that was
// deleted would be found too. An object may have several owners, so there may be several values.
func ownerOf(pod *corev1.Pod) ([]string, error) {
	owners := make([]string, len(pod.OwnerReferences))
	for i, owner := range pod.OwnerReferences {
		owners[i] = string(owner.UID)
	}
	return owners, nil
}

// errNoOwner is what an index function must not do: say by an error that an object has no value.
var errNoOwner = errors.New("this pod has no owner")

// ownerOrError is ownerOf with that mistake.
func ownerOrError(pod *corev1.Pod) ([]string, error) {
	if len(pod.OwnerReferences) == 0 {
		return nil, errNoOwner
	}
	return ownerOf(pod)
}

// newIndexer is what is inside an informer.
func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.TypedIndexersToIndexers(indexers()))
}

// pod makes a pod; changes say what is special about it.
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

// shop is a handful of pods that differ in all that is indexed.
func shop() []*corev1.Pod {
	return []*corev1.Pod{
		pod("shop", "web-0", onNode("node-1"), withApp("web"), ownedBy("uid-web")),
		pod("shop", "web-1", onNode("node-2"), withApp("web"), ownedBy("uid-web")),
		pod("shop", "db-0", onNode("node-1"), withApp("db"), ownedBy("uid-db", "uid-backup")),
		pod("test", "web-0", onNode("node-2"), withApp("web")),
		pod("test", "waits"),
	}
}
