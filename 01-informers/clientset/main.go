// Clientset lists the same pods through the three kinds of client that client-go has, and weighs the
// answers.
//
// Read beside it, at the pinned version, k8s.io/client-go@v0.37.2:
//   - kubernetes/clientset.go, NewForConfig: one typed client per group and version, over one HTTP client.
//   - gentype/type.go, and rest/request.go, UseProtobufAsDefaultIfPreferred: why a typed client gets protobuf unasked.
//   - dynamic/simple.go, ConfigFor: why a dynamic client gets JSON (or CBOR, where both sides have it).
//   - metadata/metadata.go, ConfigFor and List: how a metadata client asks for less.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

// count is how many pods are made.
var count = 20

var program = lesson.Lesson{
	Name: "clientset",
	Shows: `Makes pods of the size that pods have in production, lists them with a typed, a dynamic and a metadata
client, and prints what each costs on the wire and what it can see. It takes about 5 seconds.`,
	Flags: func(flags *flag.FlagSet) {
		flags.Func("pods", "the `NUMBER` of pods to make, 1 to 500 (default: 20)", func(value string) error {
			number, err := strconv.Atoi(value)
			if err != nil || number < 1 || number > 500 {
				return errors.New("it must be a number from 1 to 500")
			}
			count = number
			return nil
		})
	},
	Run: run,
}

func run(ctx context.Context, world *lesson.World) error {
	if err := makePods(ctx, world, count); err != nil {
		return err
	}
	if err := weigh(ctx, world); err != nil {
		return err
	}
	if err := compress(ctx, world); err != nil {
		return err
	}
	return look(ctx, world)
}

// weigh lists the pods in every way, and prints what came over the wire, rounded: a version that is one
// digit longer must not change the page.
func weigh(ctx context.Context, world *lesson.World) error {
	world.Printf("1. %d pods, listed:\n\n", count)
	world.Printf("   %-27s  %-36s %4s  %7s  %5s\n", "client", "content type", "KiB", "per pod", "ratio")
	var first int64
	for _, way := range ways {
		list, err := way.list(ctx, world)
		if err != nil {
			return fmt.Errorf("listing with the %s client: %w", way.name, err)
		}
		if list.items != count {
			return fmt.Errorf("the %s client listed %d pods instead of %d", way.name, list.items, count)
		}
		first = cmp.Or(first, list.bytes)
		world.Printf("   %-27s  %-36s %4d  %7d  %5.2f\n", way.name, list.contentType, list.bytes>>10,
			rounded(list.bytes/int64(count)), float64(list.bytes)/float64(first))
	}
	bookkeeping, err := managedFields(ctx, world)
	if err != nil {
		return err
	}
	world.Printf("\n   Per pod is in bytes. The pods are the same each time; what differs is the encoding and, with\n")
	world.Printf("   metadata, how much is asked for. That this saves so little is due to metadata.managedFields: about\n")
	world.Printf("   %d bytes of each pod, which every client gets, and most never read.\n\n", rounded(bookkeeping/int64(count)))
	return nil
}

func rounded(bytes int64) int64 { return (bytes + 50) / 100 * 100 }

// managedFields is how many bytes of all pods tell who wrote which field. It is JSON, in protobuf too.
func managedFields(ctx context.Context, world *lesson.World) (int64, error) {
	list, err := world.Client.CoreV1().Pods(world.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	var bytes int64
	for _, pod := range list.Items {
		for _, entry := range pod.ManagedFields {
			bytes += int64(len(entry.FieldsV1.GetRawString()))
		}
	}
	return bytes, nil
}

// compress lists with the dynamic client once more, as it is by default: it lets the server compress. (The
// server's part is k8s.io/apiserver@v0.37.0 pkg/endpoints/handlers/responsewriters/writers.go,
// defaultGzipThresholdBytes.)
func compress(ctx context.Context, world *lesson.World) error {
	plain, err := dynamicJSON(ctx, world)
	if err != nil {
		return err
	}
	wire := meter{gzip: true}
	pressed, err := dynamicThrough(ctx, world, &wire)
	if err != nil {
		return err
	}
	world.Printf("2. Compressed, which clients allow unless rest.Config.DisableCompression is set:\n\n")
	if wire.encoding == "" {
		world.Printf("   JSON of %d KiB came as it is: the server compresses answers above 128 KiB only.\n\n", plain.bytes>>10)
		return nil
	}
	world.Printf("   JSON of %d KiB came as %s, %.2f of that on the wire: the server compresses answers above 128 KiB.\n",
		plain.bytes>>10, wire.encoding, float64(pressed.bytes)/float64(plain.bytes))
	world.Printf("   (These pods are all alike; others compress less.) In memory the objects are as large as ever.\n\n")
	return nil
}

// look reads the same things of one pod through each client.
func look(ctx context.Context, world *lesson.World) error {
	const name = "web-0"
	world.Printf("3. What each can see of the pod %s:\n\n", name)
	world.Printf("   %-9s %-28s %-16s %-16s %s\n", "client", "Go type", "label app", "image", "phase")
	row := func(client string, object metav1.Object, image, phase string) {
		world.Printf("   %-9s %-28s %-16s %-16s %s\n", client, fmt.Sprintf("%T", object), object.GetLabels()["app"], image, phase)
	}

	pod, err := world.Client.CoreV1().Pods(world.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	row("typed", pod, pod.Spec.Containers[0].Image, string(pod.Status.Phase))

	dynamicPods, err := dynamicClient(world.Config, world.Namespace)
	if err != nil {
		return err
	}
	object, err := dynamicPods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	image, phase, err := imageAndPhase(object)
	if err != nil {
		return err
	}
	row("dynamic", object, image, phase)

	metadataPods, err := metadataClient(world.Config, world.Namespace)
	if err != nil {
		return err
	}
	partial, err := metadataPods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	row("metadata", partial, "-", "-")

	_, found, err := unstructured.NestedString(object.Object, "spec", "containerz", "image")
	if err != nil {
		return err
	}
	world.Printf("\n   A field misspelt: with the typed client it does not compile; with the dynamic one found=%t, and no error.\n", found)
	world.Printf("   apiVersion and kind: typed %s, dynamic %s, metadata %s.\n", kindOf(pod), kindOf(object), kindOf(partial))
	world.Printf("   A Go type says it already, so typed clients leave these two fields empty.\n")
	return nil
}

// imageAndPhase digs in a map of maps, which is all that an Unstructured is. The types are those of JSON:
// a list is a []any, a whole number an int64.
func imageAndPhase(object *unstructured.Unstructured) (image, phase string, err error) {
	containers, found, err := unstructured.NestedSlice(object.Object, "spec", "containers")
	if err != nil || !found || len(containers) == 0 {
		return "", "", fmt.Errorf("a pod without containers (found: %t): %w", found, err)
	}
	first, ok := containers[0].(map[string]any)
	if !ok {
		return "", "", fmt.Errorf("a container is a %T", containers[0])
	}
	if image, _, err = unstructured.NestedString(first, "image"); err != nil {
		return "", "", err
	}
	phase, _, err = unstructured.NestedString(object.Object, "status", "phase")
	return image, phase, err
}
