// Package lossless is exercise 04c: set a label, and lose nothing.
package lossless

import (
	"context"
	"maps"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

var resource = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}

// Entry is what the reader writes.
type Entry func(ctx context.Context, policies dynamic.ResourceInterface, name, key, value string) error

const name = "web"

// Check sets labels, and compares what was there before.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("the label is set", func(b *check.B) {
		p := newPolicy(b, work.Entry, map[string]string{"seen": "no"})
		p.label("seen")
		p.expectLabels(map[string]string{"seen": "yes"})
	})
	if !ok {
		return
	}
	t.Behaviour("a NetworkPolicy without labels gets the label", func(b *check.B) {
		p := newPolicy(b, work.Entry, nil)
		p.label("seen")
		p.expectLabels(map[string]string{"seen": "yes"})
	})
	t.Behaviour("other labels stay", func(b *check.B) {
		p := newPolicy(b, work.Entry, map[string]string{"team": "billing"})
		p.label("seen")
		p.expectLabels(map[string]string{"team": "billing", "seen": "yes"})
	})
	t.Behaviour("a key with a slash is set", func(b *check.B) {
		p := newPolicy(b, work.Entry, map[string]string{"team": "billing"})
		p.label("example.com/seen")
		p.expectLabels(map[string]string{"team": "billing", "example.com/seen": "yes"})
	})
	t.Behaviour("the label of an earlier call stays", func(b *check.B) {
		p := newPolicy(b, work.Entry, map[string]string{"team": "billing"})
		p.label("seen")
		p.label("checked")
		p.expectLabels(map[string]string{"team": "billing", "seen": "yes", "checked": "yes"})
	})
	t.Behaviour("a field that the Go type lacks stays", func(b *check.B) {
		p := newPolicy(b, work.Entry, map[string]string{"seen": "no"})
		p.label("seen")
		if restricted, _, _ := unstructured.NestedStringSlice(p.read().Object, "spec", "policyTypes"); len(restricted) != 2 {
			b.Fatalf("spec.policyTypes was [Ingress Egress] and is %v: the policy no longer restricts egress", restricted)
		}
	})
	t.Behaviour("a field that the Go type lacks stays in the items of a list", func(b *check.B) {
		p := newPolicy(b, work.Entry, map[string]string{"seen": "no"})
		p.label("seen")
		if end := p.port(p.read())["endPort"]; end != int64(8999) {
			b.Fatalf("endPort is lost: of the ports 8000 to 8999 only the first is left")
		}
	})
	t.Behaviour("what another writer changes at the same moment stays", func(b *check.B) {
		p := newPolicy(b, work.Entry, map[string]string{"seen": "no", "team": "billing"})
		p.changeMeanwhile()
		if err := p.try("seen"); err != nil {
			b.Event("  it returned the error: %v", err)
			p.label("seen")
		}
		if port := p.port(p.read())["port"]; port != int64(8080) {
			b.Fatalf("another writer has set the port from 8000 to 8080, and it is %v", port)
		}
		p.expectLabels(map[string]string{"team": "payments", "seen": "yes"})
	})
	t.Behaviour("a NetworkPolicy that does not exist is an error", func(b *check.B) {
		p := newPolicy(b, work.Entry, nil)
		if err := p.entry(b.Context(), p.client(p.wire.Config()), "missing", "seen", "yes"); err == nil {
			b.Fatalf("Label returned no error")
		}
	})
}

// policy is a NetworkPolicy on the API server, with the reader's function.
type policy struct {
	b         *check.B
	entry     Entry
	wire      *kube.Wire
	namespace string
	// policies is the check's own client.
	policies dynamic.ResourceInterface
}

func newPolicy(b *check.B, entry Entry, labels map[string]string) *policy {
	p := &policy{b: b, entry: entry, wire: kube.NewWire(b), namespace: kube.Namespace(b)}
	p.policies = p.client(kube.Config(b))
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"podSelector": map[string]any{},
		"policyTypes": []any{"Ingress", "Egress"},
		"ingress": []any{map[string]any{
			"ports": []any{map[string]any{"protocol": "TCP", "port": int64(8000), "endPort": int64(8999)}},
		}},
	}}}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind("NetworkPolicy"))
	object.SetName(name)
	object.SetLabels(labels)
	if _, err := p.policies.Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
		b.Fatalf("creating a NetworkPolicy: %v", err)
	}
	return p
}

func (p *policy) client(config *rest.Config) dynamic.ResourceInterface {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		p.b.Fatalf("making a client: %v", err)
	}
	return client.Resource(resource).Namespace(p.namespace)
}

func (p *policy) try(key string) error {
	p.b.Event("Label %s=yes", key)
	return p.entry(p.b.Context(), p.client(p.wire.Config()), name, key, "yes")
}

func (p *policy) label(key string) {
	if err := p.try(key); err != nil {
		p.b.Fatalf("Label returned an error: %v", err)
	}
}

func (p *policy) read() *unstructured.Unstructured {
	object, err := p.policies.Get(p.b.Context(), name, metav1.GetOptions{})
	if err != nil {
		p.b.Fatalf("reading the NetworkPolicy: %v", err)
	}
	return object
}

// port is the one that the policy has.
func (p *policy) port(object *unstructured.Unstructured) map[string]any {
	rules, _, err := unstructured.NestedSlice(object.Object, "spec", "ingress")
	if err != nil || len(rules) != 1 {
		p.b.Fatalf("the NetworkPolicy has %d rules, and had one", len(rules))
	}
	if rule, ok := rules[0].(map[string]any); ok {
		ports, _, err := unstructured.NestedSlice(rule, "ports")
		if err == nil && len(ports) == 1 {
			if port, ok := ports[0].(map[string]any); ok {
				return port
			}
		}
	}
	p.b.Fatalf("the rule of the NetworkPolicy is %v", rules[0])
	return nil
}

// changeMeanwhile lets another writer change the port and a label just before the first write of the reader's function arrives.
func (p *policy) changeMeanwhile() {
	var once sync.Once
	p.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if kube.Writes(request) {
			once.Do(p.change)
		}
		return nil, nil
	})
}

func (p *policy) change() {
	p.b.Event("  another writer sets the port to 8080, and the label team to payments")
	patch := []byte(`[{"op":"replace","path":"/spec/ingress/0/ports/0/port","value":8080},` +
		`{"op":"replace","path":"/metadata/labels/team","value":"payments"}]`)
	if _, err := p.policies.Patch(p.b.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		p.b.Errorf("changing the NetworkPolicy: %v", err)
	}
}

func (p *policy) expectLabels(want map[string]string) {
	if got := p.read().GetLabels(); !maps.Equal(got, want) {
		p.b.Fatalf("the labels are %v, and should be %v", got, want)
	}
}
