// Listwatch calls the API server directly: one List, and then a Watch that continues where the list ended. Reflectors,
// informers and caches are built on this pair of calls.
//
// Read beside it, at the pinned versions:
//   - k8s.io/apimachinery@v0.37.2 pkg/apis/meta/v1/types.go, ListOptions: every option that is used here.
//   - k8s.io/client-go@v0.37.2 tools/cache/listwatch.go, ListWatch: the same two calls as a pair of functions.
//   - k8s.io/client-go@v0.37.2 tools/cache/reflector.go, list, watchList and watch: the code that calls them for you.
package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name: "listwatch",
	Shows: `Lists pods, watches them from the resourceVersion of the list, and shows what happens without it: replayed ADDED
events, 410 Gone, pages, and the streaming list. It takes about 5 seconds. One of the steps creates a
CustomResourceDefinition of its own, and deletes it again.`,
	Run: run,
}

// observer is what the steps of this lesson share. Its client for pods records the requests.
type observer struct {
	*lesson.Env
	requests lesson.Requests
	pods     typedcorev1.PodInterface
}

func newObserver(env *lesson.Env) *observer {
	o := &observer{Env: env}
	o.pods = lesson.Must(kubernetes.NewForConfig(o.requests.Attach(env.Config))).CoreV1().Pods(env.Namespace)
	return o
}

func run(ctx context.Context, env *lesson.Env) {
	o := newObserver(env)
	env.CreatePods(ctx, "a", "b", "c")
	o.listThenWatch(ctx)
	o.watchWithoutVersion(ctx)
	o.resume(ctx)
	o.page(ctx)
	o.gone(ctx)
	o.stream(ctx)
	o.asFunctions(ctx)
}

// listAndWatch lists the pods and watches them from the resourceVersion of the list.
func (o *observer) listAndWatch(ctx context.Context) (listed string, w watch.Interface) {
	list := lesson.Must(o.pods.List(ctx, metav1.ListOptions{}))
	w = lesson.Must(o.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))
	return names(list.Items), w
}

func (o *observer) listThenWatch(ctx context.Context) {
	o.Printf("1. List, then watch from the resourceVersion of the list\n")
	listed, w := o.listAndWatch(ctx)
	defer w.Stop()
	o.Printf("   listed: %s\n", listed)
	o.CreatePods(ctx, "d")
	o.label(ctx, "a")
	o.DeletePods(ctx, "b")
	o.Printf("   watched: %s\n", mustReceive(ctx, w, 4))
	o.PrintRequests(o.requests.Take())
	o.Printf("   No object of the list was sent again, and no change after the list is missing.\n\n")
}

func (o *observer) watchWithoutVersion(ctx context.Context) {
	o.Printf("2. Watch without a resourceVersion\n")
	w := lesson.Must(o.pods.Watch(ctx, metav1.ListOptions{}))
	defer w.Stop()
	replayed := mustReceive(ctx, w, 3)
	o.CreatePods(ctx, "e")
	o.Printf("   watched, before any change: %s\n", replayed)
	o.Printf("   watched, after e was created: %s\n", mustReceive(ctx, w, 1))
	o.PrintRequests(o.requests.Take())
	o.Printf("   The first %d are existing objects, not changes. An event does not say which of the two it is.\n\n", len(replayed))
}

func (o *observer) resume(ctx context.Context) {
	o.Printf("3. Resume from the last resourceVersion\n")
	_, w := o.listAndWatch(ctx)
	defer w.Stop()
	o.label(ctx, "d")
	before := mustReceive(ctx, w, 1)
	w.Stop()
	o.Printf("   watched: %s; then the watch ended\n", before)

	o.CreatePods(ctx, "f")
	o.DeletePods(ctx, "c")
	resumed := lesson.Must(o.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: before[0].GetResourceVersion()}))
	defer resumed.Stop()
	o.Printf("   watched from the resourceVersion of that event: %s\n", mustReceive(ctx, resumed, 3))
	o.PrintRequests(o.requests.Take())
	o.Printf("   The server sent the changes between the two watches, the deletion too. No list was needed.\n\n")
}
