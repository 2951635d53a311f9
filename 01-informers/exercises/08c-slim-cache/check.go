// Package slimcache is exercise 08c: a transform that makes a cache small, and a write that does not send what it dropped.
package slimcache

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(informer cache.SharedIndexInformer, client kubernetes.Interface) (
	label func(ctx context.Context, namespace, name, value string) error, err error)

const (
	patience = 3 * time.Second
	// small is how many bytes a ConfigMap may take in the cache, as JSON. The managedFields of a alone are more.
	small = 1000
	keys  = 100
)

// Check compares the cache, and what is on the API server, with what the check has created.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("the cache has the metadata, and the label is set", func(b *check.B) {
		s := start(b, work.Entry)
		s.eventually("a", func(cached metav1.Object, _ int) string {
			if cached.GetLabels()["team"] != "red" || cached.GetAnnotations()["about"] != "animals" {
				return "in the cache, a label or an annotation of a is missing"
			}
			return ""
		})
		s.label("a")
		s.eventually("a", func(cached metav1.Object, _ int) string {
			if cached.GetLabels()["seen"] != "yes" {
				return "the label was set, and the cache does not have it"
			}
			return ""
		})
	})
	ok = ok && t.Behaviour("in the cache a ConfigMap of 10 kB takes less than 1 kB", func(b *check.B) {
		s := start(b, work.Entry)
		s.create("late")
		s.change("a", "longer")
		s.expectSmall("a")
		s.expectSmall("late")
	})
	if !ok {
		return
	}
	t.Behaviour("in the cache a ConfigMap of 10 kB of binaryData, without data, takes less than 1 kB", func(b *check.B) {
		s := start(b, work.Entry)
		s.createBinary("binary")
		s.expectSmall("binary")
	})
	t.Behaviour("the annotation bytes is how large the data is", func(b *check.B) {
		s := start(b, work.Entry)
		s.expectBytes("a")
		s.create("late")
		s.expectBytes("late")
		s.change("a", "longer")
		s.expectBytes("a")
	})
	t.Behaviour("the annotation bytes of a ConfigMap without data is 0", func(b *check.B) {
		s := start(b, work.Entry)
		s.createBinary("binary")
		s.expectBytes("binary")
	})
	t.Behaviour("the label changes nothing else on the API server", func(b *check.B) {
		s := start(b, work.Entry)
		s.wire.Fail(1, kube.Writes)
		s.labelAgain("a")
		s.expectOnServer("a")
	})
	t.Behaviour("the label changes nothing that another writer has changed meanwhile", func(b *check.B) {
		s := start(b, work.Entry)
		s.wire.CutWatches()
		s.changeMeanwhile("a", "longer")
		s.labelAgain("a")
		s.expectOnServer("a")
	})
}

// slim is an informer with the reader's transform.
type slim struct {
	b         *check.B
	wire      *kube.Wire
	namespace string
	client    typedcorev1.ConfigMapInterface
	informer  cache.SharedIndexInformer
	set       func(ctx context.Context, namespace, name, value string) error
	// want is what the check has written last.
	want map[string]*corev1.ConfigMap
}

func start(b *check.B, entry Entry) *slim {
	s := &slim{b: b, wire: kube.NewWire(b), namespace: kube.Namespace(b), want: map[string]*corev1.ConfigMap{}}
	s.client = kube.Client(b).CoreV1().ConfigMaps(s.namespace)
	s.create("a")
	client := s.wire.Client()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(s.namespace))
	s.informer = factory.Core().V1().ConfigMaps().Informer()
	var err error
	if s.set, err = entry(s.informer, client); err != nil {
		b.Fatalf("Slim returned an error: %v", err)
	}
	factory.StartWithContext(b.Context())
	b.Cleanup(factory.Shutdown)
	b.Eventually(patience, func() string {
		if s.informer.HasSynced() && s.wire.OpenWatches() > 0 {
			return ""
		}
		return "the cache has not synced: does the transform return an error?"
	})
	return s
}

func (s *slim) create(name string) {
	s.b.Event("the check creates %s, with 10 kB of data", name)
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"team": "red"}, Annotations: map[string]string{"about": "animals"},
		},
		Data: map[string]string{},
	}
	for i := range keys {
		object.Data[fmt.Sprintf("key-%03d", i)] = strings.Repeat("x", 100)
	}
	s.note(s.client.Create(s.b.Context(), object, metav1.CreateOptions{}))
}

func (s *slim) createBinary(name string) {
	s.b.Event("the check creates %s, with 10 kB of binaryData", name)
	s.note(s.client.Create(s.b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		BinaryData: map[string][]byte{"key": bytes.Repeat([]byte{0xff}, 100*keys)},
	}, metav1.CreateOptions{}))
}

// change is what another writer does.
func (s *slim) change(name, value string) {
	s.b.Event("another writer changes the data and the label team of %s", name)
	object, err := s.client.Get(s.b.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.b.Fatalf("reading a ConfigMap: %v", err)
	}
	object.Data["another"] = value
	object.Labels["team"] = "blue"
	s.note(s.client.Update(s.b.Context(), object, metav1.UpdateOptions{}))
}

func (s *slim) note(object *corev1.ConfigMap, err error) {
	if err != nil {
		s.b.Fatalf("writing a ConfigMap: %v", err)
	}
	s.want[object.Name] = object
}

// changeMeanwhile is change, just before the first write of the reader's function arrives.
func (s *slim) changeMeanwhile(name, value string) {
	var once sync.Once
	s.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if kube.Writes(request) {
			once.Do(func() { s.change(name, value) })
		}
		return nil, nil
	})
}

// labelAgain calls the reader's function, and once more if it returns an error.
func (s *slim) labelAgain(name string) {
	s.b.Event("label %s with seen=yes", name)
	if err := s.set(s.b.Context(), s.namespace, name, "yes"); err != nil {
		s.b.Event("  it returned the error: %v", err)
		s.label(name)
	}
}

// label calls the reader's function.
func (s *slim) label(name string) {
	s.b.Event("label %s with seen=yes", name)
	if err := s.set(s.b.Context(), s.namespace, name, "yes"); err != nil {
		s.b.Fatalf("the function that sets the label returned an error: %v", err)
	}
}

// eventually waits for something to be true of a ConfigMap in the cache, and of its size there.
func (s *slim) eventually(name string, condition func(cached metav1.Object, size int) string) {
	s.b.Eventually(patience, func() string {
		object, found, err := s.informer.GetStore().GetByKey(s.namespace + "/" + name)
		if err != nil || !found {
			return fmt.Sprintf("%s is not in the cache", name)
		}
		cached, err := apimeta.Accessor(object)
		if err != nil {
			s.b.Fatalf("what is in the cache has no metadata: %v", err)
		}
		content, err := json.Marshal(object)
		if err != nil {
			s.b.Fatalf("what is in the cache has no JSON: %v", err)
		}
		return condition(cached, len(content))
	})
}

func (s *slim) expectSmall(name string) {
	s.eventually(name, func(_ metav1.Object, size int) string {
		if size > small {
			return fmt.Sprintf("%s takes more than 1 kB in the cache: is it data, binaryData or managedFields?", name)
		}
		return ""
	})
}

func (s *slim) expectBytes(name string) {
	want := 0
	for _, value := range s.want[name].Data {
		want += len(value)
	}
	s.eventually(name, func(cached metav1.Object, _ int) string {
		if got := cached.GetAnnotations()["bytes"]; got != strconv.Itoa(want) {
			return fmt.Sprintf("%s has %d bytes of data, and in the cache its annotation is %q", name, want, got)
		}
		return ""
	})
}

// expectOnServer compares a ConfigMap with the API server's.
func (s *slim) expectOnServer(name string) {
	got, err := s.client.Get(s.b.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.b.Fatalf("reading a ConfigMap: %v", err)
	}
	want := s.want[name].DeepCopy()
	metav1.SetMetaDataLabel(&want.ObjectMeta, "seen", "yes")
	switch {
	case len(got.Data) == 0:
		s.b.Fatalf("on the API server, the data of %s is gone", name)
	case !apiequality.Semantic.DeepEqual(got.Data, want.Data):
		s.b.Fatalf("on the API server, the data of %s is not what the other writer has written", name)
	case !apiequality.Semantic.DeepEqual(got.Labels, want.Labels):
		s.b.Fatalf("on the API server, the labels of %s are %v, and should be %v", name, got.Labels, want.Labels)
	case !apiequality.Semantic.DeepEqual(got.Annotations, want.Annotations):
		s.b.Fatalf("on the API server, the annotations of %s are %v, and should be %v", name, got.Annotations, want.Annotations)
	}
}
