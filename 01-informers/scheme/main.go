// Scheme shows the two tables between a manifest and a Go value: the scheme maps a kind to a Go type, and the REST
// mapper maps a kind to a path on the server.
//
// Read beside it, at the pinned versions:
//   - k8s.io/apimachinery@v0.37.2 pkg/runtime/scheme.go, Scheme, AddKnownTypeWithName, ObjectKinds and New.
//   - k8s.io/apimachinery@v0.37.2 pkg/apis/meta/v1/register.go, AddToGroupVersion: what each version needs besides its kinds.
//   - k8s.io/client-go@v0.37.2 kubernetes/scheme/register.go: client-go's own scheme, with which typed clients decode.
//   - k8s.io/client-go@v0.37.2 restmapper/discovery.go, NewDiscoveryRESTMapperWithContext. What it replaces,
//     NewDiscoveryRESTMapper, cannot be cancelled.
package main

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name: "scheme",
	Shows: `Looks kinds up in a scheme (kind to Go type) and in a REST mapper (kind to path on the server), shows the errors
for a kind that is not registered, and lists pods with a scheme of two kinds. It takes about 3 seconds.`,
	Run: run,
}

// tables are what the steps of this lesson look kinds up in.
type tables struct {
	*lesson.Env
	scheme *runtime.Scheme
	mapper apimeta.RESTMapperWithContext
}

func run(ctx context.Context, env *lesson.Env) {
	t := tables{env, builtInScheme(), newMapper(ctx, env.Config)}
	t.kindsAndTypes()
	t.kindsAndResources(ctx)
	t.notRegistered()
	t.inSchemeAndOnServer(ctx)
	t.withoutScheme()
	t.minimal(ctx)
}

// builtInScheme returns a copy of client-go's own scheme. The original, clientgoscheme.Scheme, is global: libraries
// add types to it, and all packages of the program see them.
func builtInScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	lesson.Check(clientgoscheme.AddToScheme(scheme))
	return scheme
}
