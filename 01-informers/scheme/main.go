// Scheme shows the two tables that stand between a manifest and a Go value: the scheme, which says what Go
// type a kind has, and the REST mapper, which says under what path the server keeps it.
//
// Read beside it, at the pinned versions:
//   - k8s.io/apimachinery@v0.37.2 pkg/runtime/scheme.go, Scheme, AddKnownTypeWithName, ObjectKinds and New.
//   - k8s.io/apimachinery@v0.37.2 pkg/apis/meta/v1/register.go, AddToGroupVersion: what each version needs besides its kinds.
//   - k8s.io/client-go@v0.37.2 kubernetes/scheme/register.go: client-go's own scheme, which typed clients decode with.
//   - k8s.io/client-go@v0.37.2 restmapper/discovery.go, NewDiscoveryRESTMapperWithContext. What it replaces,
//     NewDiscoveryRESTMapper, cannot be cancelled.
package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name: "scheme",
	Shows: `Looks kinds up in a scheme (kind to Go type) and in a REST mapper (kind to path on the server), shows what
a kind that is not registered does, and lists pods with a scheme of two kinds. It takes about 3 seconds.`,
	Run: run,
}

func run(ctx context.Context, world *lesson.World) error {
	builtIn, err := builtInScheme()
	if err != nil {
		return err
	}
	mapper, err := newMapper(ctx, world.Config)
	if err != nil {
		return err
	}
	kindsAndTypes(world, builtIn)
	if err := kindsAndResources(ctx, world, mapper); err != nil {
		return err
	}
	if err := notRegistered(world); err != nil {
		return err
	}
	if err := twoTables(ctx, world, builtIn, mapper); err != nil {
		return err
	}
	if err := withoutScheme(world); err != nil {
		return err
	}
	return minimal(ctx, world, builtIn)
}

// builtInScheme is a copy of client-go's own scheme. The original, clientgoscheme.Scheme, belongs to the
// whole program: a library may have added to it, and what one adds, all see.
func builtInScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, clientgoscheme.AddToScheme(scheme)
}

// kindsOf is how many kinds a scheme knows, without the options and events that every version has.
func kindsOf(scheme *runtime.Scheme) int {
	number := 0
	for kind := range scheme.AllKnownTypes() {
		if !common(kind) {
			number++
		}
	}
	return number
}
