//go:build start

package faults

import (
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/subject"
)

// crashing crashes at a write.
type crashing struct {
	next   http.RoundTripper
	at     int
	after  bool
	writes int
}

func (c *crashing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return c.next.RoundTrip(request)
	}
	c.writes++
	switch {
	case c.writes != c.at:
		return c.next.RoundTrip(request)
	case c.after:
		if response, err := c.next.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	}
	return nil, errors.New("the operator has crashed")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run tells the story with a crash, and returns how many writes there were.
func run(t *testing.T, transport *crashing) int {
	t.Helper()
	config := lab.Config(t)
	c, err := client.NewWithWatch(config, client.Options{Scheme: lab.Scheme()})
	must(t, err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		transport.next = next
		return transport
	})
	through, err := client.New(config, client.Options{Scheme: lab.Scheme()})
	must(t, err)

	lolcow := &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: lab.Namespace(t)}}
	events, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(lolcow.Namespace))
	must(t, err)
	defer events.Stop()
	must(t, c.Create(t.Context(), lolcow))
	operator := subject.NewKeeper(through)
	for _, greeting := range []string{"Moo", "Baa"} {
		lolcow.Spec.Greeting = greeting
		must(t, c.Patch(t.Context(), lolcow, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"greeting":"`+greeting+`"}}`))))
		for {
			_, err := operator.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(lolcow)})
			if err == nil {
				break
			}
			operator = subject.NewKeeper(through)
		}
	}
	must(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "the-end", Namespace: lolcow.Namespace}}))
	judge(t, events, lolcow)
	return transport.writes
}

// judge reads the events up to the end.
func judge(t *testing.T, events watch.Interface, lolcow *v1alpha1.Lolcow) {
	t.Helper()
	there := map[types.UID]string{}
	for event := range events.ResultChan() {
		configMap, ok := event.Object.(*corev1.ConfigMap)
		switch {
		case !ok:
			t.Fatalf("the watch has ended: %v", event.Object)
		case configMap.Name == "the-end":
			if len(there) == 0 {
				t.Error("there never was a ConfigMap")
			}
			for _, greeting := range there {
				if greeting != lolcow.Spec.Greeting {
					t.Errorf("at the end the greeting is %q", greeting)
				}
			}
			return
		case !metav1.IsControlledBy(configMap, lolcow):
			continue
		case event.Type == watch.Deleted:
			delete(there, configMap.UID)
		default:
			there[configMap.UID] = configMap.Data["greeting"]
		}
		if len(there) != 1 {
			t.Errorf("there are %d ConfigMaps", len(there))
		}
	}
}

func TestCrashes(t *testing.T) {
	for at := run(t, &crashing{}); at > 0; at-- {
		run(t, &crashing{at: at})
		run(t, &crashing{at: at, after: true})
	}
}
