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

func newObserver(env *lesson.Env) (*observer, error) {
	o := &observer{Env: env}
	client, err := kubernetes.NewForConfig(o.requests.Record(env.Config))
	if err != nil {
		return nil, err
	}
	o.pods = client.CoreV1().Pods(env.Namespace)
	return o, nil
}

func run(ctx context.Context, env *lesson.Env) error {
	o, err := newObserver(env)
	if err != nil {
		return err
	}
	if err := env.CreatePods(ctx, "a", "b", "c"); err != nil {
		return err
	}
	return lesson.Steps(ctx, o.listThenWatch, o.watchWithoutVersion, o.resume, o.page, o.gone, o.stream, o.asFunctions)
}

// listAndWatch lists the pods and watches them from the resourceVersion of the list.
func (o *observer) listAndWatch(ctx context.Context) (listed string, w watch.Interface, err error) {
	list, err := o.pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", nil, err
	}
	w, err = o.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	return names(list.Items), w, err
}

func (o *observer) listThenWatch(ctx context.Context) error {
	o.Printf("1. List, then watch from the resourceVersion of the list\n")
	listed, w, err := o.listAndWatch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	o.Printf("   listed: %s\n", listed)
	if err := o.CreatePods(ctx, "d"); err != nil {
		return err
	}
	if err := o.label(ctx, "a"); err != nil {
		return err
	}
	if err := o.DeletePods(ctx, "b"); err != nil {
		return err
	}
	seen, err := receive(ctx, w, 4)
	if err != nil {
		return err
	}
	o.Printf("   watched: %s\n", seen)
	o.PrintRequests(o.requests.Take())
	o.Printf("   No object of the list was sent again, and no change after the list is missing.\n\n")
	return nil
}

func (o *observer) watchWithoutVersion(ctx context.Context) error {
	o.Printf("2. Watch without a resourceVersion\n")
	w, err := o.pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	replayed, err := receive(ctx, w, 3)
	if err != nil {
		return err
	}
	if err := o.CreatePods(ctx, "e"); err != nil {
		return err
	}
	created, err := receive(ctx, w, 1)
	if err != nil {
		return err
	}
	o.Printf("   watched, before any change: %s\n", replayed)
	o.Printf("   watched, after e was created: %s\n", created)
	o.PrintRequests(o.requests.Take())
	o.Printf("   The first %d are existing objects, not changes. An event does not say which of the two it is.\n\n", len(replayed))
	return nil
}

func (o *observer) resume(ctx context.Context) error {
	o.Printf("3. Resume from the last resourceVersion\n")
	_, w, err := o.listAndWatch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := o.label(ctx, "d"); err != nil {
		return err
	}
	before, err := receive(ctx, w, 1)
	if err != nil {
		return err
	}
	w.Stop()
	o.Printf("   watched: %s; then the watch ended\n", before)

	if err := o.CreatePods(ctx, "f"); err != nil {
		return err
	}
	if err := o.DeletePods(ctx, "c"); err != nil {
		return err
	}
	resumed, err := o.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: before[0].resourceVersion})
	if err != nil {
		return err
	}
	defer resumed.Stop()
	missed, err := receive(ctx, resumed, 3)
	if err != nil {
		return err
	}
	o.Printf("   watched from the resourceVersion of that event: %s\n", missed)
	o.PrintRequests(o.requests.Take())
	o.Printf("   The server sent the changes between the two watches, the deletion too. No list was needed.\n\n")
	return nil
}
