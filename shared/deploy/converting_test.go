package deploy

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func newCRD(spec map[string]any) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "teapots.example.com"},
	}
	if spec != nil {
		object["spec"] = spec
	}
	return &unstructured.Unstructured{Object: object}
}

// The error of an operator that responds with a failure is all that says which object cannot be converted.
func TestWhatCannotBeListedIsReported(t *testing.T) {
	crd := newCRD(map[string]any{
		"group": "example.com", "names": map[string]any{"kind": "Teapot"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
	})
	for _, text := range []string{
		"etcdserver: request timed out",
		"conversion webhook for example.com/v2, Kind=Teapot failed: decoding Teapot a/spout in example.com/v2",
	} {
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
				crd.DeepCopyInto(object.(*unstructured.Unstructured))
				return nil
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return errors.New(text)
			},
		}).Build()
		if why := whyNotGone(t.Context(), c, crd); why != explained(text) || !strings.HasPrefix(why, text) {
			t.Errorf("got %q, want it to begin with %q", why, text)
		}
	}
}

// The harness ends the conversions that it has set up itself, and no others.
func TestConversionsOfTheHarnessEnd(t *testing.T) {
	const conversion, rest = `{"f:spec":{"f:conversion":{"f:strategy":{}}}}`, `{"f:spec":{"f:group":{}}}`
	for name, test := range map[string]struct {
		strategy, manager, operation, fields string
		ends                                 bool
	}{
		"the harness applied them":     {"Webhook", "harness", "Apply", conversion, true},
		"there are none":               {"None", "harness", "Apply", conversion, false},
		"another client applied them":  {"Webhook", "kubectl", "Apply", conversion, false},
		"the harness updated them":     {"Webhook", "harness", "Update", conversion, false},
		"the harness applied the rest": {"Webhook", "harness", "Apply", rest, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := newCRD(map[string]any{"conversion": map[string]any{"strategy": test.strategy}})
			live.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: test.manager, Operation: metav1.ManagedFieldsOperationType(test.operation), FieldsV1: metav1.NewFieldsV1(test.fields),
			}})
			patches := 0
			c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
					live.DeepCopyInto(object.(*unstructured.Unstructured))
					return nil
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					patches++
					return nil
				},
			}).Build()
			var out strings.Builder
			if err := endConversions(t.Context(), &out, c, newCRD(nil)); err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(out.String(), "CustomResourceDefinition teapots.example.com"); said != test.ends || patches > 0 != test.ends {
				t.Errorf("%d patches, and it was said: %q", patches, out.String())
			}
		})
	}
}

func TestCRDThatCannotBeRead(t *testing.T) {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("forbidden")
		},
	}).Build()
	err := endConversions(t.Context(), t.Output(), c, newCRD(nil))
	if err == nil || err.Error() != "reading CustomResourceDefinition teapots.example.com: forbidden" {
		t.Errorf("got %v", err)
	}
}
