package main

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/workbook/01-informers/internal/lesson"
)

// kindsAndTypes reads the scheme in both directions.
func (t tables) kindsAndTypes() {
	t.Printf("1. Kind to Go type: the kinds of %s in client-go's scheme\n\n", appsv1.SchemeGroupVersion)
	types := t.scheme.KnownTypes(appsv1.SchemeGroupVersion)
	for _, kind := range slices.Sorted(maps.Keys(types)) {
		if !common(appsv1.SchemeGroupVersion.WithKind(kind)) && !strings.HasSuffix(kind, "List") {
			t.Printf("   %-20s %s\n", kind, path(types[kind]))
		}
	}
	t.Printf("   not shown: their lists, and what every version has: options and watch events\n\n")

	autoscaler := autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
	t.Printf("   One kind, several versions, a Go type for each:\n")
	for _, version := range t.scheme.VersionsForGroupKind(autoscaler.GroupKind()) {
		t.Printf("   %-20s %s\n", version, path(t.scheme.AllKnownTypes()[version.WithKind(autoscaler.Kind)]))
	}

	t.Printf("\n   Go type to kind: a Go value does not hold its kind, the scheme does\n")
	for _, object := range []runtime.Object{&corev1.Pod{}, &appsv1.Deployment{}, &metav1.Status{}} {
		kinds, _, err := t.scheme.ObjectKinds(object)
		lesson.Check(err)
		var names []string
		for _, kind := range kinds {
			names = append(names, kind.GroupVersion().String()+" "+kind.Kind)
		}
		t.Printf("   %-20T kind in the value: %q, kinds in the scheme: %s\n",
			object, object.GetObjectKind().GroupVersionKind().Kind, strings.Join(names, ", "))
	}
	t.Printf("\n")
}

// common reports whether metav1.AddToGroupVersion adds this kind to every version.
func common(kind schema.GroupVersionKind) bool {
	return kind.Kind == metav1.WatchEventKind || strings.HasSuffix(kind.Kind, "Options") || kind.Version == runtime.APIVersionInternal ||
		kind.GroupVersion() == metav1.Unversioned && responses[kind.Kind]
}

// responses are the kinds of responses that are not objects of an API.
var responses = map[string]bool{
	"Status": true, "APIVersions": true, "APIGroupList": true, "APIGroup": true, "APIResourceList": true,
}

// path returns a type with the whole path of its package: several packages are called v1.
func path(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }
