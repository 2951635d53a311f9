// Clientset lists the same pods through the three kinds of client that client-go has, and compares the responses.
//
// Read beside it, at the pinned version, k8s.io/client-go@v0.37.2:
//   - kubernetes/clientset.go, NewForConfig: one typed client per group and version, over one HTTP client.
//   - gentype/type.go, and rest/request.go, UseProtobufAsDefaultIfPreferred: why a typed client requests protobuf by default.
//   - dynamic/simple.go, ConfigFor: why a dynamic client requests JSON (or CBOR, where client and server have it enabled).
//   - metadata/metadata.go, ConfigFor and List: how a metadata client requests less.
package main

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

// count is the number of pods.
const count = 20

var program = lesson.Lesson{
	Name: "clientset",
	Shows: `Creates pods of the size of pods in production, lists them with a typed, a dynamic and a metadata client, and
prints the size of each response and what each client can read. It takes about 5 seconds.`,
	Run: run,
}

func run(ctx context.Context, env *lesson.Env) {
	createPods(ctx, env, count)
	measure(ctx, env)
	read(ctx, env)
}

// measure lists the pods through each client and prints the size of the responses. It rounds, because a
// resourceVersion with one more digit must not change the output.
func measure(ctx context.Context, env *lesson.Env) {
	env.Printf("1. %d pods, listed:\n\n", count)
	env.Printf("   %-27s  %-36s %4s  %7s  %5s\n", "client", "content type", "KiB", "per pod", "ratio")
	var first int64
	for _, client := range clients {
		var wire meter
		client.list(ctx, env, &wire)
		first = cmp.Or(first, wire.bytes)
		env.Printf("   %-27s  %-36s %4d  %7d  %5.2f\n", client.name, wire.contentType, wire.bytes>>10,
			rounded(wire.bytes/int64(count)), float64(wire.bytes)/float64(first))
	}
	env.Printf("\n   Per pod is in bytes. The pods are the same each time: only the encoding differs, and the metadata client\n")
	env.Printf("   requests less. It saves so little because of metadata.managedFields: about %d bytes of each pod, which\n",
		rounded(managedFields(ctx, env)/int64(count)))
	env.Printf("   every client gets and most never read.\n\n")
}

func rounded(bytes int64) int64 { return (bytes + 50) / 100 * 100 }

// managedFields returns the size of the managed fields of all pods. They are JSON, in protobuf too.
func managedFields(ctx context.Context, env *lesson.Env) (bytes int64) {
	for _, pod := range lesson.Must(env.Client.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{})).Items {
		for _, entry := range pod.ManagedFields {
			bytes += int64(len(entry.FieldsV1.GetRawString()))
		}
	}
	return bytes
}

// read reads the same fields of one pod through each client.
func read(ctx context.Context, env *lesson.Env) {
	const name = "web-0"
	env.Printf("2. What each client can read of the pod %s:\n\n", name)
	env.Printf("   %-9s %-28s %-16s %-16s %s\n", "client", "Go type", "label app", "image", "phase")
	row := func(client string, object metav1.Object, image, phase string) {
		env.Printf("   %-9s %-28s %-16s %-16s %s\n", client, fmt.Sprintf("%T", object), object.GetLabels()["app"], image, phase)
	}

	pod := lesson.Must(env.Client.CoreV1().Pods(env.Namespace).Get(ctx, name, metav1.GetOptions{}))
	row("typed", pod, pod.Spec.Containers[0].Image, string(pod.Status.Phase))

	object := lesson.Must(dynamicClient(env.Config, env.Namespace).Get(ctx, name, metav1.GetOptions{}))
	image, phase, err := imageAndPhase(object)
	lesson.Check(err)
	row("dynamic", object, image, phase)

	partial := lesson.Must(metadataClient(env.Config, env.Namespace).Get(ctx, name, metav1.GetOptions{}))
	row("metadata", partial, "-", "-")

	_, found, err := unstructured.NestedString(object.Object, "spec", "containerz", "image")
	lesson.Check(err)
	env.Printf("\n   A misspelt field: with the typed client it does not compile; with the dynamic one found=%t, and no error.\n", found)
	env.Printf("   apiVersion and kind: typed %s, dynamic %s, metadata %s.\n", kindOf(pod), kindOf(object), kindOf(partial))
	env.Printf("   Typed clients leave these two fields empty, because the Go type already stands for them.\n")
}

// imageAndPhase reads nested maps: an Unstructured holds the types of JSON, a list is a []any and an integer an int64.
func imageAndPhase(object *unstructured.Unstructured) (image, phase string, err error) {
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "containers")
	if err != nil {
		return "", "", err
	}
	if image, _, err = unstructured.NestedString(containers[0].(map[string]any), "image"); err != nil {
		return "", "", err
	}
	phase, _, err = unstructured.NestedString(object.Object, "status", "phase")
	return image, phase, err
}
