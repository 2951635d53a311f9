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

// clients list the pods of a namespace through a meter.
var clients = []struct {
	name string
	list func(context.Context, *lesson.Env, *meter)
}{
	{"typed", listTyped},
	{"typed, JSON requested", listTypedJSON},
	{"dynamic", listDynamic},
	{"metadata", listMetadata},
}

func listTyped(ctx context.Context, env *lesson.Env, wire *meter) {
	client := lesson.Must(kubernetes.NewForConfig(wire.attach(env.Config)))
	lesson.Must(client.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{}))
}

// listTypedJSON requests what clients of custom resources have to: their types have no protobuf encoding.
func listTypedJSON(ctx context.Context, env *lesson.Env, wire *meter) {
	inJSON := *env
	inJSON.Config = rest.CopyConfig(env.Config)
	inJSON.Config.ContentType = runtime.ContentTypeJSON
	listTyped(ctx, &inJSON, wire)
}

func listDynamic(ctx context.Context, env *lesson.Env, wire *meter) {
	lesson.Must(dynamicClient(wire.attach(env.Config), env.Namespace).List(ctx, metav1.ListOptions{}))
}

func listMetadata(ctx context.Context, env *lesson.Env, wire *meter) {
	lesson.Must(metadataClient(wire.attach(env.Config), env.Namespace).List(ctx, metav1.ListOptions{}))
}

func dynamicClient(config *rest.Config, namespace string) dynamic.ResourceInterface {
	return lesson.Must(dynamic.NewForConfig(config)).Resource(pods).Namespace(namespace)
}

func metadataClient(config *rest.Config, namespace string) metadata.ResourceInterface {
	return lesson.Must(metadata.NewForConfig(config)).Resource(pods).Namespace(namespace)
}

// kindOf returns the apiVersion and the kind that an object holds.
func kindOf(object runtime.Object) string {
	apiVersion, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return cmp.Or(strings.TrimSpace(apiVersion+" "+kind), "(empty)")
}
