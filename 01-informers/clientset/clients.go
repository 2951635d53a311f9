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

// pods is the resource to list. A typed client has it in the names of its methods.
var pods = corev1.SchemeGroupVersion.WithResource("pods")

// clients list the pods of a namespace through a meter, and return their number.
var clients = []struct {
	name string
	list func(context.Context, *lesson.Env, *meter) (int, error)
}{
	{"typed", listTyped},
	{"typed, JSON requested", listTypedJSON},
	{"dynamic", listDynamic},
	{"metadata", listMetadata},
}

func listTyped(ctx context.Context, env *lesson.Env, wire *meter) (int, error) {
	client, err := kubernetes.NewForConfig(wire.attach(env.Config))
	if err != nil {
		return 0, err
	}
	list, err := client.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

// listTypedJSON requests what clients of custom resources have to: their types have no protobuf encoding.
func listTypedJSON(ctx context.Context, env *lesson.Env, wire *meter) (int, error) {
	inJSON := *env
	inJSON.Config = rest.CopyConfig(env.Config)
	inJSON.Config.ContentType = runtime.ContentTypeJSON
	return listTyped(ctx, &inJSON, wire)
}

func listDynamic(ctx context.Context, env *lesson.Env, wire *meter) (int, error) {
	client, err := dynamicClient(wire.attach(env.Config), env.Namespace)
	if err != nil {
		return 0, err
	}
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

func listMetadata(ctx context.Context, env *lesson.Env, wire *meter) (int, error) {
	client, err := metadataClient(wire.attach(env.Config), env.Namespace)
	if err != nil {
		return 0, err
	}
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
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

// kindOf returns the apiVersion and the kind that an object holds.
func kindOf(object runtime.Object) string {
	apiVersion, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return cmp.Or(strings.TrimSpace(apiVersion+" "+kind), "(empty)")
}
