package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/lesson"
)

// manifest is a Foo, as a reader would apply it.
const manifest = `{
  "apiVersion": "samplecontroller.example.com/v1alpha1",
  "kind": "Foo",
  "metadata": {"name": "example"},
  "spec": {"deploymentName": "web", "replicas": 2}
}`

// notRegistered decodes a Foo with a scheme that does not know it, and then with one that does.
func notRegistered(world *lesson.World) error {
	world.Printf("3. A kind that is not registered\n\n")
	before, err := builtInScheme()
	if err != nil {
		return err
	}
	after, err := builtInScheme()
	if err != nil {
		return err
	}
	_, err = decode(before)
	if !runtime.IsNotRegisteredError(err) {
		return fmt.Errorf("expected that Foo is not registered, got: %w", err)
	}
	world.Printf("   decoding a Foo: %v\n", err)
	_, _, err = before.ObjectKinds(&v1alpha1.Foo{})
	world.Printf("   asking for its kind: %v\n", err)

	if err := v1alpha1.AddToScheme(after); err != nil {
		return err
	}
	object, err := decode(after)
	if err != nil {
		return err
	}
	foo, ok := object.(*v1alpha1.Foo)
	if !ok {
		return fmt.Errorf("a Foo was decoded as %T", object)
	}
	world.Printf("   after v1alpha1.AddToScheme: %T, deploymentName %q, replicas %d\n", object, foo.Spec.DeploymentName, *foo.Spec.Replicas)
	// The name of a scheme is meant to be the line that made it. runtime.internalPackages in scheme.go looks for
	// a path that module downloads do not have, as they bear a version, so it is NewScheme's own line.
	world.Printf("   (The name of the scheme in the errors is of no help: all have the same.)\n\n")
	return nil
}

// decode makes the Go value that the manifest's own apiVersion and kind ask for.
func decode(scheme *runtime.Scheme) (runtime.Object, error) {
	return runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDeserializer(), []byte(manifest))
}

// withoutScheme decodes the same Foo with no scheme at all.
func withoutScheme(world *lesson.World) error {
	world.Printf("5. Unstructured needs no registration\n\n")
	object, err := runtime.Decode(unstructured.UnstructuredJSONScheme, []byte(manifest))
	if err != nil {
		return err
	}
	foo, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a Foo was decoded as %T", object)
	}
	replicas, found, err := unstructured.NestedInt64(foo.Object, "spec", "replicas")
	if err != nil || !found {
		return errors.Join(errors.New("no replicas"), err)
	}
	world.Printf("   %T: kind %q, replicas %d\n", foo, foo.GetKind(), replicas)

	var typed v1alpha1.Foo
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(foo.Object, &typed); err != nil {
		return err
	}
	world.Printf("   and from there to the Go type, where one has it: deploymentName %q\n", typed.Spec.DeploymentName)
	world.Printf("   It carries apiVersion and kind in itself, which is why it needs no table to say them.\n\n")
	return nil
}

// minimalScheme knows pods and nothing else. Every version of every group is put together like this; the
// AddToScheme functions of k8s.io/api do it with all kinds of one version.
func minimalScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	// The options of requests, the events of watches, and the Status that errors come as.
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return scheme
}

// minimal lists pods through a client that knows two kinds.
func minimal(ctx context.Context, world *lesson.World, builtIn *runtime.Scheme) error {
	world.Printf("6. A minimal scheme\n\n")
	if err := world.CreatePods(ctx, "a", "b"); err != nil {
		return err
	}
	scheme := minimalScheme()
	client, err := clientFor(world.Config, scheme)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := client.Get().Namespace(world.Namespace).Resource("pods").Do(ctx).Into(&pods); err != nil {
		return err
	}
	world.Printf("   kinds in client-go's scheme: %d, in this one: %d; pods listed through it: %d\n\n",
		kindsOf(builtIn), kindsOf(scheme), len(pods.Items))

	world.Printf("   ConfigMaps through it:\n")
	configMaps := func(verb string) *rest.Request {
		return client.Verb(verb).Namespace(world.Namespace).Resource("configmaps")
	}
	err = configMaps(http.MethodPost).Body(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}).Do(ctx).Error()
	world.Printf("   create:                     %s\n", inShort(err))
	err = configMaps(http.MethodGet).Do(ctx).Into(&corev1.ConfigMapList{})
	world.Printf("   list, into a ConfigMapList: %s\n", inShort(err))
	_, err = configMaps(http.MethodGet).Do(ctx).Get()
	world.Printf("   list, into what it may be:  %s\n", inShort(err))
	world.Printf("   watch:                      %s\n\n", inShort(firstOfWatch(ctx, configMaps(http.MethodGet))))
	world.Printf("   The scheme is asked for the Go type of what comes, unless the caller brings a value to decode into.\n")
	world.Printf("   Nobody can bring one for the events of a watch, so what is cached is registered, or Unstructured.\n")
	return nil
}

// firstOfWatch returns what the first event of a watch is wrong with, if anything.
func firstOfWatch(ctx context.Context, request *rest.Request) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	w, err := request.VersionedParams(&metav1.ListOptions{Watch: true}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	event, open := <-w.ResultChan()
	if !open {
		return errors.New("no event came")
	}
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	return nil
}

func inShort(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// clientFor is a client for the core group that decodes with scheme. This is what a typed clientset has
// inside, once for every group and version.
func clientFor(config *rest.Config, scheme *runtime.Scheme) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}
