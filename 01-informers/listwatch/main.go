// Listwatch asks the API server itself: one List, and then a watch that goes on where the list ended. That
// pair of calls is all that reflectors, informers and caches are built on.
//
// Read beside it, at the pinned versions:
//   - k8s.io/apimachinery@v0.37.2 pkg/apis/meta/v1/types.go, ListOptions: every option that is used here.
//   - k8s.io/client-go@v0.37.2 tools/cache/listwatch.go, ListWatch: the same two calls as a pair of functions.
//   - k8s.io/client-go@v0.37.2 tools/cache/reflector.go, list, watchList and watch: who makes them for you.
package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name: "listwatch",
	Shows: `Lists pods, watches them from the version of the list, and shows what goes wrong without it: replayed ADDED
events, 410 Gone, pages, and the streamed list. It takes about 5 seconds. For one of the steps it makes
a kind of its own, as a CustomResourceDefinition, and deletes it again.`,
	Run: run,
}

// observer is what the steps of this lesson share: the pods of its namespace, through a client whose
// requests are recorded.
type observer struct {
	*lesson.World
	requests lesson.Requests
	pods     typedcorev1.PodInterface
}

func newObserver(world *lesson.World) (*observer, error) {
	o := &observer{World: world}
	client, err := kubernetes.NewForConfig(o.requests.Record(world.Config))
	if err != nil {
		return nil, err
	}
	o.pods = client.CoreV1().Pods(world.Namespace)
	return o, nil
}

func run(ctx context.Context, world *lesson.World) error {
	o, err := newObserver(world)
	if err != nil {
		return err
	}
	if err := world.CreatePods(ctx, "a", "b", "c"); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		o.listThenWatch, o.watchWithoutVersion, o.resume, o.page, o.gone, o.stream, o.asFunctions,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// told prints what was asked of the server since it was last called.
func (o *observer) told() {
	for _, request := range o.requests.Take() {
		o.Printf("   asked: %s\n", request)
	}
}

func (o *observer) listThenWatch(ctx context.Context) error {
	list, err := o.pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	o.Printf("1. List, then watch from the version of the list\n")
	o.Printf("   listed: %s\n", names(list.Items))

	w, err := o.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := o.change(ctx); err != nil {
		return err
	}
	seen, err := take(ctx, w, 4)
	if err != nil {
		return err
	}
	o.Printf("   watched: %s\n", seen)
	o.told()
	o.Printf("   Nothing that was in the list came again, and nothing that happened after it is missing.\n\n")
	return nil
}

// change creates the pod d, labels a, and deletes b: four events.
func (o *observer) change(ctx context.Context) error {
	if err := o.CreatePods(ctx, "d"); err != nil {
		return err
	}
	if err := o.label(ctx, "a"); err != nil {
		return err
	}
	return o.DeletePods(ctx, "b")
}

func (o *observer) watchWithoutVersion(ctx context.Context) error {
	o.Printf("2. Watch without a version\n")
	w, err := o.pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	replayed, err := take(ctx, w, 3)
	if err != nil {
		return err
	}
	if err := o.CreatePods(ctx, "e"); err != nil {
		return err
	}
	created, err := take(ctx, w, 1)
	if err != nil {
		return err
	}
	o.Printf("   watched, before anything was done: %s\n", replayed)
	o.Printf("   watched, after e was created: %s\n", created)
	o.told()
	o.Printf("   The first %d are no changes: they are what there is, and an event does not say which it is.\n\n", len(replayed))
	return nil
}

func (o *observer) resume(ctx context.Context) error {
	o.Printf("3. Resume from the last version seen\n")
	list, err := o.pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w, err := o.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	if err := o.label(ctx, "d"); err != nil {
		return err
	}
	before, err := take(ctx, w, 1)
	w.Stop()
	if err != nil {
		return err
	}
	o.Printf("   watched: %s; then the watch ended\n", before)

	if err := o.CreatePods(ctx, "f"); err != nil {
		return err
	}
	if err := o.DeletePods(ctx, "c"); err != nil {
		return err
	}
	w, err = o.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: before[0].version})
	if err != nil {
		return err
	}
	defer w.Stop()
	missed, err := take(ctx, w, 3)
	if err != nil {
		return err
	}
	o.Printf("   watched from the version of that event: %s\n", missed)
	o.told()
	o.Printf("   What happened while nobody watched is there, the deletion too. No list was needed.\n\n")
	return nil
}
