// Package getter is exercise 04b: get an object of any kind.
package getter

import (
	"context"
	_ "embed"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

//go:embed ledgers.yaml
var ledgers []byte

// Get is what NewGetter returns.
type Get = func(ctx context.Context, what, namespace, name string) (*unstructured.Unstructured, error)

// Entry is what the reader writes.
type Entry func(config *rest.Config) (Get, error)

// Check gets objects of several kinds.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("an object is found by plural", func(b *check.B) {
		g := newGetter(b, work.Entry)
		g.expect("configmaps", "a", "ConfigMap")
	})
	if !ok {
		return
	}
	t.Behaviour("an object is found by kind, singular and short name", func(b *check.B) {
		g := newGetter(b, work.Entry)
		g.expect("ConfigMap", "a", "ConfigMap")
		g.expect("configmap", "a", "ConfigMap")
		g.expect("cm", "a", "ConfigMap")
		g.expect("CM", "a", "ConfigMap")
	})
	t.Behaviour("an object is found by a plural that is no guess, and with its group", func(b *check.B) {
		g := newGetter(b, work.Entry)
		g.expect("NetworkPolicy", "a", "NetworkPolicy")
		g.expect("networkpolicies.networking.k8s.io", "a", "NetworkPolicy")
	})
	t.Behaviour("an object without a namespace is found", func(b *check.B) {
		g := newGetter(b, work.Entry)
		g.expect("namespaces", g.namespace, "Namespace")
	})
	t.Behaviour("a kind that is not there is an error that names it", func(b *check.B) {
		g := newGetter(b, work.Entry)
		g.expectNone("unicorns")
		g.expectNone("configmaps.apps")
	})
	t.Behaviour("where the kinds are known, a get is one request", func(b *check.B) {
		g := newGetter(b, work.Entry)
		g.expect("configmaps", "a", "ConfigMap")
		before := len(g.wire.Requests())
		g.expect("configmaps", "a", "ConfigMap")
		if n := len(g.wire.Requests()) - before; n != 1 {
			b.Fatalf("the second get of a ConfigMap was %d requests", n)
		}
	})
	t.Behaviour("where the kinds are known, a get of what is not there is one request", func(b *check.B) {
		g := newGetter(b, work.Entry)
		g.expect("configmaps", "a", "ConfigMap")
		before := len(g.wire.Requests())
		b.Event("get configmaps missing")
		if _, err := g.get(b.Context(), "configmaps", g.namespace, "missing"); err == nil {
			b.Fatalf("the ConfigMap is not there, and get returned no error")
		}
		if n := len(g.wire.Requests()) - before; n != 1 {
			b.Fatalf("the kind was known and the ConfigMap not there, and the get was %d requests", n)
		}
	})
	t.Behaviour("a kind whose CRD was installed later is found", func(b *check.B) {
		// Both know the kinds of before, and one of them has looked for this kind.
		g := newGetter(b, work.Entry)
		g.expect("configmaps", "a", "ConfigMap")
		early := newGetter(b, work.Entry)
		early.namespace = g.namespace
		early.expectNone("ledger")
		b.Event("the check installs the CRD ledgeries.exercises.example.com")
		kube.InstallCRD(b, ledgers)
		err := kube.Client(b).CoreV1().RESTClient().Post().
			AbsPath("/apis/exercises.example.com/v1/namespaces", g.namespace, "ledgeries").SetHeader("Content-Type", "application/json").
			Body([]byte(`{"apiVersion":"exercises.example.com/v1","kind":"Ledger","metadata":{"name":"a"}}`)).Do(b.Context()).Error()
		if err != nil {
			b.Fatalf("creating a Ledger: %v", err)
		}
		g.expect("ledgeries", "a", "Ledger")
		g.expect("ldg", "a", "Ledger")
		early.expect("ledger", "a", "Ledger")
	})
}

// getter is the reader's function, with a namespace that has a ConfigMap and a NetworkPolicy.
type getter struct {
	b         *check.B
	wire      *kube.Wire
	get       Get
	namespace string
}

func newGetter(b *check.B, entry Entry) *getter {
	g := &getter{b: b, wire: kube.NewWire(b), namespace: kube.Namespace(b)}
	client, meta := kube.Client(b), metav1.ObjectMeta{Name: "a"}
	_, err := client.CoreV1().ConfigMaps(g.namespace).Create(b.Context(), &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a ConfigMap: %v", err)
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: meta}
	if _, err := client.NetworkingV1().NetworkPolicies(g.namespace).Create(b.Context(), policy, metav1.CreateOptions{}); err != nil {
		b.Fatalf("creating a NetworkPolicy: %v", err)
	}
	if g.get, err = entry(g.wire.Config()); err != nil {
		b.Fatalf("NewGetter returned an error: %v", err)
	}
	return g
}

// expectNone gets an object of a kind that the API server does not have.
func (g *getter) expectNone(what string) {
	g.b.Event("get %s a", what)
	kind, _, _ := strings.Cut(what, ".")
	if _, err := g.get(g.b.Context(), what, g.namespace, "a"); err == nil || !strings.Contains(err.Error(), kind) {
		g.b.Fatalf("get %s: the API server has no such kind, and the error is: %v", what, err)
	}
}

func (g *getter) expect(what, name, kind string) {
	g.b.Event("get %s %s", what, strings.Replace(name, g.namespace, "of the check", 1))
	object, err := g.get(g.b.Context(), what, g.namespace, name)
	if err != nil {
		g.b.Fatalf("get %s: %v", what, err)
	}
	if object == nil || object.GetKind() != kind || object.GetName() != name {
		g.b.Fatalf("get %s: this is not the %s: %v", what, kind, object)
	}
}
