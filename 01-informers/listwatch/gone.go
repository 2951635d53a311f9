package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// gone watches from a version that the server no longer remembers.
//
// A server remembers the changes of a kind since it began to serve that kind, and as many as fit its watch
// cache: at least the last 100, and on a busy server about those of the last 75 s. (That is
// k8s.io/apiserver@v0.37.0 pkg/storage/cacher/watch_cache_history.go, GetIntervalLocked and resizeCacheLocked.)
// So version "1" of pods is not sure to be gone: a young cluster still has it, and replays its history. A
// version from before a kind was there is.
func (o *observer) gone(ctx context.Context) error {
	o.Printf("5. 410 Gone, and the relist\n")
	before, err := o.pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(o.requests.Record(o.Config))
	if err != nil {
		return err
	}
	kind, remove, err := o.makeKind(ctx)
	if err != nil {
		return err
	}
	defer remove()
	notes := client.Resource(kind).Namespace(o.Namespace)
	for _, name := range []string{"x", "y"} {
		if err := createNote(ctx, notes, kind, name); err != nil {
			return err
		}
	}
	o.requests.Take()

	w, err := notes.Watch(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		return err
	}
	defer w.Stop()
	_, err = take(ctx, w, 1)
	var refusal *apierrors.StatusError
	if !errors.As(err, &refusal) || !apierrors.IsResourceExpired(err) {
		return fmt.Errorf("watching from a version of long ago: expected 410, got: %w", err)
	}
	o.Printf("   watched from a version of long ago: ERROR, code %d, reason %s\n", refusal.ErrStatus.Code, refusal.ErrStatus.Reason)
	o.told()
	o.Printf("   The HTTP status is 200: the 410 is an event in the stream, the first and the last.\n")

	list, err := notes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	again, err := notes.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer again.Stop()
	if err := notes.Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
		return err
	}
	seen, err := take(ctx, again, 1)
	if err != nil {
		return err
	}
	o.Printf("   listed again: %d notes; watched from there: %s\n", len(list.Items), seen)
	o.requests.Take()
	o.Printf("   What was deleted before the new list is told by no event: compare the list with what you had.\n\n")
	return nil
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// makeKind makes a kind that is served from now on, Note, in a group that no other run has. It returns how
// to ask for it and how to remove it.
func (o *observer) makeKind(ctx context.Context) (schema.GroupVersionResource, func(), error) {
	kind := schema.GroupVersionResource{Group: o.Namespace + ".example.com", Version: "v1", Resource: "notes"}
	client, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return kind, nil, err
	}
	definitions := client.Resource(definitions)
	name := kind.GroupResource().String()
	if _, err := definitions.Create(ctx, definition(name, kind), metav1.CreateOptions{}); err != nil {
		return kind, nil, fmt.Errorf("making the kind Note: %w", err)
	}
	remove := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := definitions.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			o.Printf("   deleting the kind Note: %v\n", err)
		}
	}
	notes := client.Resource(kind).Namespace(o.Namespace)
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := notes.List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		remove()
		return kind, nil, fmt.Errorf("waiting for the kind Note: %w", err)
	}
	return kind, remove, nil
}

// definition is the CustomResourceDefinition, without its Go type, which is no part of client-go.
func definition(name string, kind schema.GroupVersionResource) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{
			"group": kind.Group,
			"scope": "Namespaced",
			"names": map[string]any{"plural": kind.Resource, "singular": "note", "kind": "Note", "listKind": "NoteList"},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
}

func createNote(ctx context.Context, notes dynamic.ResourceInterface, kind schema.GroupVersionResource, name string) error {
	note := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	note.SetGroupVersionKind(kind.GroupVersion().WithKind("Note"))
	if _, err := notes.Create(ctx, note, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the note %s: %w", name, err)
	}
	return nil
}
