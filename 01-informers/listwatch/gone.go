package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/lesson"
)

// gone watches from a resourceVersion whose following changes the server no longer has.
//
// A server keeps the changes of a resource from the time at which it began to serve it, as many as its watch cache
// holds: at least the last 100, and on a busy server those of about the last 75 s (k8s.io/apiserver@v0.37.0
// pkg/storage/cacher/watch_cache_history.go, GetIntervalLocked and resizeCacheLocked). A young cluster still has all
// changes of pods. A resourceVersion from before a CRD was created is always too old for its objects.
func (o *observer) gone(ctx context.Context) {
	o.Printf("5. 410 Gone, and the relist\n")
	before := lesson.Must(o.pods.List(ctx, metav1.ListOptions{}))
	notes := o.notes(o.requests.Attach(o.Config))
	defer o.createCRD(ctx)()
	var err error
	lesson.Until(ctx, "the server serves the CRD", func() bool {
		_, err = notes.List(ctx, metav1.ListOptions{})
		return !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err)
	})
	lesson.Check(err)
	for _, name := range []string{"x", "y"} {
		note := &unstructured.Unstructured{}
		note.SetGroupVersionKind(o.resource().GroupVersion().WithKind("Note"))
		note.SetName(name)
		lesson.Must(notes.Create(ctx, note, metav1.CreateOptions{}))
	}
	o.requests.Take()

	w := lesson.Must(notes.Watch(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion}))
	defer w.Stop()
	_, err = receive(ctx, w, 1)
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsResourceExpired(err) {
		lesson.Check(fmt.Errorf("watching from an old resourceVersion: expected 410, got: %w", err))
	}
	o.Printf("   watched from an old resourceVersion: ERROR, code %d, reason %s\n", status.ErrStatus.Code, status.ErrStatus.Reason)
	o.PrintRequests(o.requests.Take())
	o.Printf("   The HTTP status is 200: the 410 is an event in the stream, the first and the last.\n")

	list := lesson.Must(notes.List(ctx, metav1.ListOptions{}))
	again := lesson.Must(notes.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}))
	defer again.Stop()
	lesson.Check(notes.Delete(ctx, "x", metav1.DeleteOptions{}))
	o.Printf("   listed again: %d notes; watched from there: %s\n", len(list.Items), mustReceive(ctx, again, 1))
	o.requests.Take()
	o.Printf("   No event reports what was deleted before the new list: compare it with the objects that you know.\n\n")
}

// resource is in an API group that only this run uses.
func (o *observer) resource() schema.GroupVersionResource {
	return lesson.Notes(o.Namespace + ".example.com")
}

func (o *observer) notes(config *rest.Config) dynamic.ResourceInterface {
	return lesson.Must(dynamic.NewForConfig(config)).Resource(o.resource()).Namespace(o.Namespace)
}

// createCRD creates a CRD, and returns a function that deletes it. The requests are not cancelled by Ctrl-C: the server could
// create the CRD all the same, and the lesson would not delete it.
func (o *observer) createCRD(ctx context.Context) (remove func()) {
	crds, crd := lesson.Must(dynamic.NewForConfig(o.Config)).Resource(lesson.CRDs), lesson.NoteCRD(o.resource().Group)
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), lesson.Patience)
	defer cancel()
	lesson.Must(crds.Create(creating, crd, metav1.CreateOptions{}))
	return func() {
		deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), lesson.Patience)
		defer cancel()
		if err := crds.Delete(deleting, crd.GetName(), metav1.DeleteOptions{}); err != nil {
			o.Printf("   deleting the CRD: %v\n", err)
		}
	}
}
