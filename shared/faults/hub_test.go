package faults

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Two schedules run at once: each has the objects of the cluster whose names begin with its namespace, the oldest first
// whatever they are called.
func TestObjectsOfTheCluster(t *testing.T) {
	h := newHub(t.Context(), nil, nil)
	h.open("one")
	h.open("other")
	nodes := schema.GroupResource{Resource: "nodes"}
	for _, name := range []string{"one-b", "other-a", "one-a", "lone", "one"} {
		node := &unstructured.Unstructured{}
		node.SetName(name)
		node.SetUID(types.UID(name))
		h.note(nodes, watch.Added, node)
	}
	for namespace, want := range map[string][]string{"one": {"one-b", "one-a"}, "other": {"other-a"}} {
		var got []string
		for _, node := range h.live(namespace, nodes) {
			got = append(got, node.GetName())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", namespace, got, want)
		}
	}
}
