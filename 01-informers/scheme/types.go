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

// kindsAndTypes reads a scheme in both directions.
func kindsAndTypes(world *lesson.World, scheme *runtime.Scheme) {
	world.Printf("1. Kind to Go type: the kinds of %s in client-go's scheme\n\n", appsv1.SchemeGroupVersion)
	types := scheme.KnownTypes(appsv1.SchemeGroupVersion)
	for _, kind := range slices.Sorted(maps.Keys(types)) {
		if !common(appsv1.SchemeGroupVersion.WithKind(kind)) && !strings.HasSuffix(kind, "List") {
			world.Printf("   %-20s %s\n", kind, path(types[kind]))
		}
	}
	world.Printf("   besides these, their lists, and what every version has: options and watch events\n\n")

	autoscaler := autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
	world.Printf("   One kind, several versions, a Go type for each:\n")
	for _, version := range scheme.VersionsForGroupKind(autoscaler.GroupKind()) {
		world.Printf("   %-20s %s\n", version, path(scheme.AllKnownTypes()[version.WithKind(autoscaler.Kind)]))
	}

	world.Printf("\n   Go type to kind: a value says nothing of its kind, the scheme does\n")
	for _, object := range []runtime.Object{&corev1.Pod{}, &appsv1.Deployment{}, &metav1.Status{}} {
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil {
			world.Printf("   %T: %v\n", object, err)
			continue
		}
		world.Printf("   %-20T kind in the value: %q, kinds in the scheme: %s\n", object, object.GetObjectKind().GroupVersionKind().Kind, inWords(kinds))
	}
	world.Printf("\n")
}

// common says whether a kind is one of those that metav1.AddToGroupVersion adds to every version.
func common(kind schema.GroupVersionKind) bool {
	return kind.Kind == metav1.WatchEventKind || strings.HasSuffix(kind.Kind, "Options") || kind.Version == runtime.APIVersionInternal ||
		kind.GroupVersion() == metav1.Unversioned && everyServers[kind.Kind]
}

// everyServers are what servers answer with besides objects.
var everyServers = map[string]bool{
	"Status": true, "APIVersions": true, "APIGroupList": true, "APIGroup": true, "APIResourceList": true,
}

// path is a type with the whole path of its package: v1.Deployment could be anybody's.
func path(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

func inWords(kinds []schema.GroupVersionKind) string {
	var all []string
	for _, kind := range kinds {
		all = append(all, kind.GroupVersion().String()+" "+kind.Kind)
	}
	return strings.Join(all, ", ")
}
