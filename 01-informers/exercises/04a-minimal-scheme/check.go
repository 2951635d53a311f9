// Package scheme is exercise 04a: the smallest scheme for a cache of ConfigMaps.
package scheme

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func() (*runtime.Scheme, error)

const (
	name     = "a"
	patience = 3 * time.Second
)

// Check sends the requests of a cache with a client of that scheme.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a ConfigMap can be created", func(b *check.B) {
		c := newClient(b, work.Entry)
		c.create()
	})
	if !ok {
		return
	}
	t.Behaviour("ConfigMaps can be listed", func(b *check.B) {
		c := newClient(b, work.Entry)
		c.create()
		object, err := c.get().Do(b.Context()).Get()
		if err != nil {
			b.Fatalf("listing: %v", sayWhere(err))
		}
		if list, ok := object.(*corev1.ConfigMapList); !ok || len(list.Items) != 1 {
			b.Fatalf("the list came as %T", object)
		}
	})
	t.Behaviour("the options of requests are sent", func(b *check.B) {
		c := newClient(b, work.Entry)
		c.create()
		options := &metav1.ListOptions{FieldSelector: "metadata.name=b"}
		var list corev1.ConfigMapList
		if err := c.get().VersionedParams(options, runtime.NewParameterCodec(c.scheme)).Do(b.Context()).Into(&list); err != nil {
			b.Fatalf("listing with a field selector: %v", sayWhere(err))
		}
		if len(list.Items) != 0 {
			b.Fatalf("the field selector did not arrive: %d objects are in the list, and none matches", len(list.Items))
		}
		dry := c.post("b").VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, runtime.NewParameterCodec(c.scheme))
		if err := dry.Do(b.Context()).Error(); err != nil {
			b.Fatalf("creating with dryRun: %v", sayWhere(err))
		}
		if err := c.get().Name("b").Do(b.Context()).Error(); err == nil {
			b.Fatalf("dryRun did not arrive: the ConfigMap was created")
		}
	})
	t.Behaviour("ConfigMaps can be watched", watches(work.Entry))
	t.Behaviour("an error has the server's words", func(b *check.B) {
		c := newClient(b, work.Entry)
		err := c.get().Name("missing").Do(b.Context()).Error()
		if err == nil || !strings.Contains(err.Error(), `configmaps "missing" not found`) {
			b.Fatalf("getting a ConfigMap that is not there: %v", err)
		}
	})
	t.Behaviour("no other kind is registered", func(b *check.B) { onlyNeeded(newClient(b, work.Entry)) })
}

// onlyNeeded checks that the scheme has no types but the two, and those that every version has.
func onlyNeeded(c *client) {
	common := reflect.TypeFor[metav1.Status]().PkgPath()
	needed := []reflect.Type{reflect.TypeFor[corev1.ConfigMap](), reflect.TypeFor[corev1.ConfigMapList]()}
	var others []string
	for kind, one := range c.scheme.AllKnownTypes() {
		if one.PkgPath() != common && !slices.Contains(needed, one) {
			others = append(others, kind.Kind)
		}
	}
	if len(others) > 0 {
		c.b.Fatalf("the scheme has the kind %s", slices.Min(others))
	}
}

func watches(entry Entry) func(*check.B) {
	return func(b *check.B) {
		c := newClient(b, entry)
		ctx, cancel := context.WithTimeout(b.Context(), 4*patience)
		defer cancel()
		watcher, err := c.get().Param("watch", "true").Watch(ctx)
		if err != nil {
			b.Fatalf("watching: %v", sayWhere(err))
		}
		defer watcher.Stop()
		c.create()
		event, open := <-watcher.ResultChan()
		if !open {
			b.Fatalf("the watch ended without an event")
		}
		if object, ok := event.Object.(*corev1.ConfigMap); !ok || object.Name != name {
			b.Fatalf("the event came as %s with %T: %v", event.Type, event.Object, event.Object)
		}
	}
}

// client is a REST client as the clientset's, with the reader's scheme.
type client struct {
	b         *check.B
	scheme    *runtime.Scheme
	rest      *rest.RESTClient
	namespace string
}

func newClient(b *check.B, entry Entry) *client {
	scheme, err := entry()
	if err != nil || scheme == nil {
		b.Fatalf("NewScheme returned %v and the error %v", scheme, err)
	}
	config := kube.NewWire(b).Config()
	config.APIPath = "/api"
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	made, err := rest.RESTClientFor(config)
	if err != nil {
		b.Fatalf("making a REST client: %v", err)
	}
	return &client{b: b, scheme: scheme, rest: made, namespace: kube.Namespace(b)}
}

func (c *client) get() *rest.Request {
	return c.rest.Get().Namespace(c.namespace).Resource("configmaps")
}

func (c *client) post(name string) *rest.Request {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return c.rest.Post().Namespace(c.namespace).Resource("configmaps").Body(object)
}

func (c *client) create() {
	if err := c.post(name).Do(c.b.Context()).Error(); err != nil {
		c.b.Fatalf("creating a ConfigMap: %v", sayWhere(err))
	}
}

// sayWhere leaves out of an error the line that made the scheme: it is of the library, and does not help the reader.
func sayWhere(err error) string {
	text, _, _ := strings.Cut(err.Error(), ` in scheme "`)
	return text
}
