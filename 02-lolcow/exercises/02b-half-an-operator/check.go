// Package half is exercise 02b: a CRD that is written by hand.
package half

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

var teapots = schema.GroupVersionResource{Group: "kitchen.example.com", Version: "v1", Resource: "teapots"}

// fields are a spec or a status.
type fields = map[string]any

// Check installs the CRD, and writes Teapots.
func Check(t *check.T, work check.Work[check.Files]) {
	ok := t.Behaviour("the API server accepts the CRD, and serves Teapots", func(b *check.B) {
		manifest, err := os.ReadFile(filepath.Join(work.Dir, "crd.yaml"))
		if err != nil {
			b.Fatalf("crd.yaml: %v", err)
		}
		kube.InstallCRD(b, manifest)
		k := newKitchen(b)
		if _, err := k.pots.List(b.Context(), metav1.ListOptions{}); err != nil {
			b.Fatalf("listing Teapots of kitchen.example.com/v1: %v", err)
		}
	})
	ok = ok && t.Behaviour("a Teapot within the bounds is stored as it was written", func(b *check.B) {
		k := newKitchen(b)
		k.stores(fields{"cups": int64(1)})
		k.stores(fields{"cups": int64(12), "blend": strings.Repeat("é", 20)})
	})
	if !ok {
		return
	}
	t.Behaviour("a Teapot out of bounds is rejected", func(b *check.B) {
		k := newKitchen(b)
		k.rejects("0 cups", fields{"cups": int64(0)})
		k.rejects("13 cups", fields{"cups": int64(13)})
		k.rejects("a blend of 21 characters", fields{"cups": int64(4), "blend": strings.Repeat("a", 21)})
		k.rejects("the word \"four\" for cups", fields{"cups": "four"})
		k.rejects("two and a half cups", fields{"cups": 2.5})
	})
	t.Behaviour("a Teapot without cups is rejected", func(b *check.B) {
		k := newKitchen(b)
		k.rejects("a spec without cups", fields{"blend": "Assam"})
		k.rejects("no spec", nil)
	})
	t.Behaviour("a field that the schema does not have is dropped", func(b *check.B) {
		k := newKitchen(b)
		pot := k.create(fields{"cups": int64(4), "cup": int64(5)})
		if _, found, _ := unstructured.NestedFieldNoCopy(pot.Object, "spec", "cup"); found {
			b.Fatalf("the field spec.cup, which is a typing error, was stored")
		}
		pot.Object["status"] = fields{"temperature": int64(80), "temp": int64(80)}
		pot, err := k.pots.UpdateStatus(b.Context(), pot, metav1.UpdateOptions{})
		if err != nil {
			return // Without a subresource that is another behaviour's to find.
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(pot.Object, "status", "temp"); found {
			b.Fatalf("the field status.temp, which is a typing error, was stored")
		}
	})
	statusIsSeparate(t)
	whatKubectlShows(t)
}

// statusIsSeparate checks that status and spec are written apart.
func statusIsSeparate(t *check.T) {
	ok := t.Behaviour("a write of the status keeps the generation, and a write of the spec raises it", func(b *check.B) {
		k := newKitchen(b)
		pot := k.writeStatus(k.create(fields{"cups": int64(4)}), 80)
		if pot.GetGeneration() != 1 {
			b.Fatalf("the status was written, and the generation is %d", pot.GetGeneration())
		}
		if pot = k.update(pot, "spec", fields{"cups": int64(5)}); pot.GetGeneration() != 2 {
			b.Fatalf("the spec was changed, and the generation is %d", pot.GetGeneration())
		}
	})
	if !ok {
		return
	}
	t.Behaviour("a write of the object leaves the status as it is", func(b *check.B) {
		k := newKitchen(b)
		pot := k.update(k.writeStatus(k.create(fields{"cups": int64(4)}), 80), "status", fields{"temperature": int64(20)})
		if temperature, _, _ := unstructured.NestedInt64(pot.Object, "status", "temperature"); temperature != 80 {
			b.Fatalf("a write of the object changed the temperature from 80 to %d", temperature)
		}
	})
	t.Behaviour("a status at the bounds is stored", func(b *check.B) {
		k := newKitchen(b)
		pot := k.create(fields{"cups": int64(4)})
		for _, temperature := range []int64{0, 100} {
			pot = k.writeStatus(pot, temperature)
		}
	})
	t.Behaviour("a status out of bounds is rejected", func(b *check.B) {
		k := newKitchen(b)
		pot := k.create(fields{"cups": int64(4)})
		for _, temperature := range []any{int64(-1), int64(101), 36.5} {
			pot.Object["status"] = fields{"temperature": temperature}
			_, err := k.pots.UpdateStatus(b.Context(), pot, metav1.UpdateOptions{})
			if !apierrors.IsInvalid(err) {
				b.Fatalf("the temperature %v was not rejected as invalid: %v", temperature, err)
			}
		}
	})
}

func whatKubectlShows(t *check.T) {
	t.Behaviour("kubectl get shows the columns Cups and Temperature", func(b *check.B) {
		k := newKitchen(b)
		pot := k.create(fields{"cups": int64(4)})
		pot.Object["status"] = fields{"temperature": int64(80)}
		// Without a subresource that is another behaviour's to find.
		if _, err := k.pots.UpdateStatus(b.Context(), pot, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			k.update(pot, "status", fields{"temperature": int64(80)})
		}
		row := k.row()
		for column, want := range map[string]string{"Cups": "4", "Temperature": "80"} {
			got, found := row[column]
			if !found {
				b.Fatalf("there is no column %s; the columns are %s", column, strings.Join(slices.Sorted(maps.Keys(row)), ", "))
			}
			if got != want {
				b.Fatalf("the column %s shows %q for a Teapot that has %s", column, got, want)
			}
		}
	})
	t.Behaviour("kubectl get pot is the same", func(b *check.B) {
		list, err := kube.Client(b).Discovery().ServerResourcesForGroupVersion(teapots.GroupVersion().String())
		if err != nil {
			b.Fatalf("asking which resources there are: %v", err)
		}
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return slices.Contains(r.ShortNames, "pot") }) {
			b.Fatalf("no resource of kitchen.example.com has the short name pot")
		}
	})
}

// kitchen is a namespace for Teapots.
type kitchen struct {
	b         *check.B
	namespace string
	pots      dynamic.ResourceInterface
	made      int
}

func newKitchen(b *check.B) *kitchen {
	client, err := dynamic.NewForConfig(kube.Config(b))
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	namespace := kube.Namespace(b)
	return &kitchen{b: b, namespace: namespace, pots: client.Resource(teapots).Namespace(namespace)}
}

// send creates a Teapot with this spec, or without one.
func (k *kitchen) send(spec fields) (*unstructured.Unstructured, error) {
	k.made++
	pot := &unstructured.Unstructured{Object: fields{
		"apiVersion": teapots.GroupVersion().String(), "kind": "Teapot", "metadata": fields{"name": fmt.Sprintf("pot-%d", k.made)},
	}}
	if spec != nil {
		pot.Object["spec"] = spec
	}
	k.b.Event("the check creates a Teapot with the spec %v", spec)
	return k.pots.Create(k.b.Context(), pot, metav1.CreateOptions{})
}

func (k *kitchen) create(spec fields) *unstructured.Unstructured {
	pot, err := k.send(spec)
	if err != nil {
		k.b.Fatalf("a Teapot within the bounds is rejected: %v", err)
	}
	return pot
}

func (k *kitchen) stores(spec fields) {
	stored, _, _ := unstructured.NestedMap(k.create(maps.Clone(spec)).Object, "spec")
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		if stored[name] != spec[name] {
			k.b.Fatalf("spec.%s was %v, and is %v on the API server", name, spec[name], stored[name])
		}
	}
}

func (k *kitchen) rejects(what string, spec fields) {
	if _, err := k.send(spec); !apierrors.IsInvalid(err) {
		if err == nil {
			k.b.Fatalf("a Teapot was accepted with %s", what)
		}
		k.b.Fatalf("a Teapot with %s was not rejected as invalid: %v", what, err)
	}
}

// update changes a part of the object, by an update of the whole.
func (k *kitchen) update(pot *unstructured.Unstructured, part string, value fields) *unstructured.Unstructured {
	k.b.Event("the check updates the Teapot with the %s %v", part, value)
	pot.Object[part] = value
	pot, err := k.pots.Update(k.b.Context(), pot, metav1.UpdateOptions{})
	if err != nil {
		k.b.Fatalf("updating a Teapot: %v", err)
	}
	return pot
}

func (k *kitchen) writeStatus(pot *unstructured.Unstructured, temperature int64) *unstructured.Unstructured {
	k.b.Event("the check writes the status with the temperature %d", temperature)
	pot.Object["status"] = fields{"temperature": temperature}
	pot, err := k.pots.UpdateStatus(k.b.Context(), pot, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		k.b.Fatalf("a Teapot has no status subresource")
	}
	if err != nil {
		k.b.Fatalf("writing the status with the temperature %d: %v", temperature, err)
	}
	if stored, found, _ := unstructured.NestedInt64(pot.Object, "status", "temperature"); !found || stored != temperature {
		k.b.Fatalf("the status was written with the temperature %d, and the API server does not have it", temperature)
	}
	return pot
}

// row is what kubectl get prints of the one Teapot that there is, by column.
func (k *kitchen) row() map[string]string {
	raw, err := kube.Client(k.b).CoreV1().RESTClient().Get().
		AbsPath("/apis", teapots.Group, teapots.Version, "namespaces", k.namespace, teapots.Resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(k.b.Context()).Raw()
	var table metav1.Table
	if err == nil {
		err = json.Unmarshal(raw, &table)
	}
	if err != nil || len(table.Rows) != 1 {
		k.b.Fatalf("asking for the table of Teapots: %d rows (%v)", len(table.Rows), err)
	}
	row := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		row[column.Name] = ""
		if cell := table.Rows[0].Cells[i]; cell != nil {
			row[column.Name] = fmt.Sprint(cell)
		}
	}
	return row
}
