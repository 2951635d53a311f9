package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// event is what a watch said, as far as this lesson looks.
type event struct {
	kind    watch.EventType
	name    string
	version string
	// ending says that the object has a deletionTimestamp: it is about to go.
	ending bool
	// initialEventsEnd is set on the bookmark that ends the list in a streamed list.
	initialEventsEnd bool
}

func (e event) String() string {
	said := strings.TrimSpace(fmt.Sprintf("%s %s", e.kind, e.name))
	if e.kind == watch.Modified && e.ending {
		said += " (deletionTimestamp)"
	}
	return said
}

type events []event

func (all events) String() string {
	var said []string
	for _, one := range all {
		said = append(said, one.String())
	}
	return strings.Join(said, ", ")
}

// patience is how long an event may take that is sure to come.
const patience = 10 * time.Second

// take reads n events. An ERROR event ends it: it returns that as an error, with what came before it.
func take(ctx context.Context, w watch.Interface, n int) (events, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no event came within %s", patience))
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
			object, err := apimeta.Accessor(one.Object)
			if err != nil {
				return all, err
			}
			all = append(all, event{
				kind: one.Type, name: object.GetName(), version: object.GetResourceVersion(),
				ending:           object.GetDeletionTimestamp() != nil,
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

// label changes one pod.
func (o *observer) label(ctx context.Context, name string) error {
	_, err := o.Client.CoreV1().Pods(o.Namespace).Patch(ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"seen":"yes"}}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("labelling the pod %s: %w", name, err)
	}
	return nil
}
