package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

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

// manifest is a Foo as a user would apply it.
const manifest = `{
  "apiVersion": "samplecontroller.example.com/v1alpha1",
  "kind": "Foo",
  "metadata": {"name": "example"},
  "spec": {"deploymentName": "web", "replicas": 2}
}`

// notRegistered decodes a Foo with a scheme without that type, and again after adding it.
func (t tables) notRegistered() {
	t.Printf("3. A kind that is not registered\n\n")
	_, err := runtime.Decode(decoder(t.scheme), []byte(manifest))
	if !runtime.IsNotRegisteredError(err) {
		lesson.Check(fmt.Errorf("expected that Foo is not registered, got: %w", err))
	}
	t.Printf("   decoding a Foo: %v\n", err)
	_, _, err = t.scheme.ObjectKinds(&v1alpha1.Foo{})
	t.Printf("   looking up its kind: %v\n", err)

	scheme := builtInScheme()
	lesson.Check(v1alpha1.AddToScheme(scheme))
	foo := lesson.Must(runtime.Decode(decoder(scheme), []byte(manifest))).(*v1alpha1.Foo)
	t.Printf("   after v1alpha1.AddToScheme: %T, deploymentName %q, replicas %d\n", foo, foo.Spec.DeploymentName, *foo.Spec.Replicas)
	// The name of a scheme should be the line that called NewScheme. To skip its own lines, runtime.internalPackages in
	// scheme.go has a path without a version; the path of a downloaded module has one, so the name is a line of NewScheme.
	t.Printf("   (The name of the scheme in the errors does not help: all schemes have the same name.)\n\n")
}

// decoder decodes to the Go type that the scheme has for the apiVersion and the kind.
func decoder(scheme *runtime.Scheme) runtime.Decoder {
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}

// withoutScheme decodes the same Foo without a scheme.
func (t tables) withoutScheme() {
	t.Printf("5. Unstructured needs no registration\n\n")
	foo := lesson.Must(runtime.Decode(unstructured.UnstructuredJSONScheme, []byte(manifest))).(*unstructured.Unstructured)
	replicas, _, err := unstructured.NestedInt64(foo.Object, "spec", "replicas")
	lesson.Check(err)
	t.Printf("   %T: kind %q, replicas %d\n", foo, foo.GetKind(), replicas)

	var typed v1alpha1.Foo
	lesson.Check(runtime.DefaultUnstructuredConverter.FromUnstructured(foo.Object, &typed))
	t.Printf("   converted to the Go type: deploymentName %q\n", typed.Spec.DeploymentName)
	t.Printf("   It holds apiVersion and kind itself, so it needs no table to look them up.\n\n")
}

// minimalScheme returns a scheme with the types of pods only. The AddToScheme functions of k8s.io/api do the same with
// all types of a version.
func minimalScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	// The options of requests, the events of watches, and Status, the form of errors.
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return scheme
}

// minimal lists pods through a client with two types.
func (t tables) minimal(ctx context.Context) {
	t.Printf("6. A minimal scheme\n\n")
	t.CreatePods(ctx, "a", "b")
	scheme := minimalScheme()
	client := clientFor(t.Config, scheme)
	var pods corev1.PodList
	lesson.Check(client.Get().Namespace(t.Namespace).Resource("pods").Do(ctx).Into(&pods))
	t.Printf("   kinds in client-go's scheme: %d, in this one: %d; pods listed through it: %d\n\n",
		kindsOf(t.scheme), kindsOf(scheme), len(pods.Items))

	t.Printf("   ConfigMaps through it:\n")
	configMaps := func(verb string) *rest.Request {
		return client.Verb(verb).Namespace(t.Namespace).Resource("configmaps")
	}
	show := func(request string, err error) {
		result := "no error"
		if err != nil {
			result = err.Error()
		}
		t.Printf("   %-27s %s\n", request+":", result)
	}
	show("create", configMaps(http.MethodPost).Body(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}).Do(ctx).Error())
	show("list, into a ConfigMapList", configMaps(http.MethodGet).Do(ctx).Into(&corev1.ConfigMapList{}))
	_, err := configMaps(http.MethodGet).Do(ctx).Get()
	show("list, type from the scheme", err)
	show("watch", firstEventError(ctx, configMaps(http.MethodGet)))
	t.Printf("\n   A decoder takes the Go type from the scheme, unless the caller passes an object to decode into.\n")
	t.Printf("   For the events of a watch a caller cannot: a type that is cached has to be registered, or be Unstructured.\n")
}

// kindsOf returns the number of kinds in a scheme, without the options and events that every version has.
func kindsOf(scheme *runtime.Scheme) int {
	number := 0
	for kind := range scheme.AllKnownTypes() {
		if !common(kind) {
			number++
		}
	}
	return number
}

// firstEventError returns the error that the first event of a watch reports, or nil.
func firstEventError(ctx context.Context, request *rest.Request) error {
	ctx, cancel := context.WithTimeout(ctx, lesson.Patience)
	defer cancel()
	w, err := request.VersionedParams(&metav1.ListOptions{Watch: true}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	event, open := <-w.ResultChan()
	if !open {
		return errors.New("the watch ended without an event")
	}
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	return nil
}

// clientFor returns a client for the core group that decodes with this scheme. A typed clientset holds one such client
// for each group and version.
func clientFor(config *rest.Config, scheme *runtime.Scheme) *rest.RESTClient {
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return lesson.Must(rest.RESTClientFor(config))
}
