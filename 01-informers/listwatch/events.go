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

// event is a watch event, with the metadata of its object.
type event struct {
	eventType watch.EventType
	metav1.Object
}

func (e event) String() string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s", e.eventType, e.GetName()))
	if e.eventType == watch.Modified && e.GetDeletionTimestamp() != nil {
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

// mustReceive is receive; any error ends the lesson.
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
			all = append(all, event{one.Type, lesson.Must(apimeta.Accessor(one.Object))})
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

// label sets a label of a pod, which causes one MODIFIED event.
func (o *observer) label(ctx context.Context, name string) {
	lesson.Must(o.Client.CoreV1().Pods(o.Namespace).Patch(ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"seen":"yes"}}}`), metav1.PatchOptions{}))
}
