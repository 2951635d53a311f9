package main

import (
	"cmp"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/lesson"
)

// pods is what a typed client's methods say by their names: the group, the version and the plural.
var pods = corev1.SchemeGroupVersion.WithResource("pods")

// weight is one list, and what it cost.
type weight struct {
	items       int
	contentType string
	bytes       int64
}

// ways are the ways to list pods.
var ways = []struct {
	name string
	list func(context.Context, *lesson.World) (weight, error)
}{
	{"typed", typed},
	{"typed, told to ask for JSON", typedJSON},
	{"dynamic", dynamicJSON},
	{"metadata", metadataOnly},
}

func typed(ctx context.Context, world *lesson.World) (weight, error) {
	return typedThrough(ctx, world.Config, world.Namespace)
}

// typedJSON does what clients of custom resources do: their types have no protobuf.
func typedJSON(ctx context.Context, world *lesson.World) (weight, error) {
	config := rest.CopyConfig(world.Config)
	config.ContentType = runtime.ContentTypeJSON
	return typedThrough(ctx, config, world.Namespace)
}

func typedThrough(ctx context.Context, config *rest.Config, namespace string) (weight, error) {
	var wire meter
	client, err := kubernetes.NewForConfig(wire.attach(config))
	if err != nil {
		return weight{}, err
	}
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return weight{}, err
	}
	return wire.of(len(list.Items)), nil
}

func dynamicJSON(ctx context.Context, world *lesson.World) (weight, error) {
	return dynamicThrough(ctx, world, new(meter))
}

func dynamicThrough(ctx context.Context, world *lesson.World, wire *meter) (weight, error) {
	client, err := dynamicClient(wire.attach(world.Config), world.Namespace)
	if err != nil {
		return weight{}, err
	}
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return weight{}, err
	}
	return wire.of(len(list.Items)), nil
}

func metadataOnly(ctx context.Context, world *lesson.World) (weight, error) {
	var wire meter
	client, err := metadataClient(wire.attach(world.Config), world.Namespace)
	if err != nil {
		return weight{}, err
	}
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return weight{}, err
	}
	return wire.of(len(list.Items)), nil
}

func (m *meter) of(items int) weight {
	return weight{items: items, contentType: m.contentType, bytes: m.bytes}
}

func dynamicClient(config *rest.Config, namespace string) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(pods).Namespace(namespace), nil
}

func metadataClient(config *rest.Config, namespace string) (metadata.ResourceInterface, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(pods).Namespace(namespace), nil
}

// kindOf is what an object says of itself.
func kindOf(object runtime.Object) string {
	apiVersion, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return cmp.Or(strings.TrimSpace(apiVersion+" "+kind), "(empty)")
}
