package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/workbook/01-informers/internal/lesson"
)

// event is the part of a watch event that this lesson uses.
type event struct {
	kind            watch.EventType
	name            string
	resourceVersion string
	// deleting reports that the object has a deletionTimestamp.
	deleting bool
	// initialEventsEnd is set on the bookmark at the end of a streaming list.
	initialEventsEnd bool
}

func (e event) String() string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s", e.kind, e.name))
	if e.kind == watch.Modified && e.deleting {
		text += " (deletionTimestamp)"
	}
	return text
}

type events []event

func (all events) String() string {
	var texts []string
	for _, one := range all {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, ", ")
}

// mustReceive ends the lesson at an ERROR event.
func mustReceive(ctx context.Context, w watch.Interface, n int) events {
	return lesson.Must(receive(ctx, w, n))
}

// receive receives n events. It returns an ERROR event as an error, with the events before it.
func receive(ctx context.Context, w watch.Interface, n int) (events, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lesson.Patience, fmt.Errorf("no event within %s", lesson.Patience))
	defer cancel()
	var all events
	for len(all) < n {
		select {
		case <-ctx.Done():
			return all, fmt.Errorf("watching: after %d of %d events: %w", len(all), n, context.Cause(ctx))
		case one, open := <-w.ResultChan():
			if !open {
				return all, errors.New("watching: the server ended the watch")
			}
			if one.Type == watch.Error {
				return all, apierrors.FromObject(one.Object)
			}
			object := lesson.Must(apimeta.Accessor(one.Object))
			all = append(all, event{
				kind: one.Type, name: object.GetName(), resourceVersion: object.GetResourceVersion(),
				deleting:         object.GetDeletionTimestamp() != nil,
				initialEventsEnd: object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true",
			})
		}
	}
	return all, nil
}

func names(pods []corev1.Pod) string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return strings.Join(all, ", ")
}

// label changes a pod, for one MODIFIED event.
func (o *observer) label(ctx context.Context, name string) {
	lesson.Must(o.Client.CoreV1().Pods(o.Namespace).Patch(ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"seen":"yes"}}}`), metav1.PatchOptions{}))
}
