package roundtrip

import (
	"context"
	_ "embed" // for the CRD
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// manifest is a CRD with both versions. v1alpha1 is stored.
//
//go:embed crd.yaml
var manifest []byte

// checkServer checks what an API server makes of the functions.
func checkServer(t *check.T, c *converter) {
	ok := t.Behaviour("an API server that stores v1alpha1 serves both versions", func(b *check.B) {
		install(b, c)
		m := newMeadow(b)
		m.create(alpha, "cow", fields{"greeting": "Moo", "port": int64(30001)})
		if got := m.get(beta, "cow").Object["spec"]; text(got) != `{"greeting":"Moo","ports":[{"name":"page","port":30001}]}` {
			b.Fatalf("in v1beta1, a Lolcow with the port 30001 has the spec %s", text(got))
		}
	})
	if !ok {
		return
	}
	t.Behaviour("who reads one version and writes it back loses nothing of the other", func(b *check.B) {
		m := newMeadow(b)
		m.create(alpha, "old", fields{"greeting": "Moo", "port": int64(30001)})
		m.writesBack(beta, alpha, "old")
		m.create(beta, "new", fields{"greeting": "Moo", "ports": ports("api", "page", "admin")})
		m.writesBack(alpha, beta, "new")
	})
	t.Behaviour("a patch in v1alpha1 leaves the ports that v1alpha1 does not show", func(b *check.B) {
		m := newMeadow(b)
		m.create(beta, "cow", fields{"ports": ports("api", "page")})
		m.patch(alpha, "cow", `{"metadata":{"labels":{"herd":"brown"}},"spec":{"greeting":"Baa","port":32000}}`)
		want := `{"greeting":"Baa","ports":[{"name":"api","port":30100},{"name":"page","port":32000}]}`
		if got := text(m.get(beta, "cow").Object["spec"]); got != want {
			b.Fatalf("the greeting and the port were patched in v1alpha1; in v1beta1 the spec is %s, and should be %s", got, want)
		}
	})
	t.Behaviour("a port that is removed in v1beta1 does not come back", func(b *check.B) {
		m := newMeadow(b)
		m.create(beta, "cow", fields{"ports": ports("page", "api")})
		cow := m.get(beta, "cow")
		cow.Object["spec"] = fields{"ports": ports("page")}
		m.update(beta, cow)
		if got := text(m.get(beta, "cow").Object["spec"]); got != `{"ports":[{"name":"page","port":30100}]}` {
			b.Fatalf("the port api was removed, and the spec is %s", got)
		}
	})
	t.Behaviour("one Lolcow whose annotation cannot be read does not fail the list", func(b *check.B) {
		m := newMeadow(b)
		m.create(alpha, "cow", fields{"port": int64(30001)})
		m.create(alpha, "calf", fields{"port": int64(30002)})
		m.patch(alpha, "calf", `{"metadata":{"annotations":{"`+annotation+`":"{"}}}`)
		list, err := m.of(beta).List(b.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 2 {
			b.Fatalf("listing two Lolcows in v1beta1: %v", err)
		}
	})
}

// converter is the webhook that the API server calls.
type converter struct {
	toBeta  func(*v1alpha1.Lolcow) (*v1beta1.Lolcow, error)
	toAlpha func(*v1beta1.Lolcow) (*v1alpha1.Lolcow, error)
}

// ServeHTTP converts the objects of a request: all, or none.
func (c *converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "this is no ConversionReview", http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, object := range review.Request.Objects {
		converted, err := c.convert(object.Raw, review.Request.DesiredAPIVersion)
		if err != nil {
			response.ConvertedObjects = nil
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			break
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: converted})
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // without a response, the API server reports a failure
}

// convert converts an object to the other version.
func (c *converter) convert(raw []byte, version string) (runtime.Object, error) {
	var to any
	var err error
	if version == beta.GroupVersion().String() {
		to, err = call(raw, c.toBeta)
	} else {
		to, err = call(raw, c.toAlpha)
	}
	if err != nil {
		return nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(to)
	if err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = version, "Lolcow"
	return &unstructured.Unstructured{Object: object}, nil
}

func call[From, To any](raw []byte, convert func(*From) (*To, error)) (*To, error) {
	from := new(From)
	if err := json.Unmarshal(raw, from); err != nil {
		return nil, err
	}
	to, err := convert(from)
	if err == nil && to == nil {
		err = fmt.Errorf("the function has returned no Lolcow of %s", raw)
	}
	return to, err
}

var (
	alpha = schema.GroupVersionResource{Group: "my.domain", Version: "v1alpha1", Resource: "lolcows"}
	beta  = schema.GroupVersionResource{Group: "my.domain", Version: "v1beta1", Resource: "lolcows"}
)

type fields = map[string]any

// ports have numbers from 30100 on.
func ports(names ...string) []any {
	var list []any
	for i, name := range names {
		list = append(list, fields{"name": name, "port": int64(30100 + i)})
	}
	return list
}

// install installs the CRD. The converter serves until the program ends.
func install(b *check.B, c *converter) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(manifest, &crd); err != nil {
		b.Fatalf("the CRD of Lolcow: %v", err)
	}
	server := httptest.NewTLSServer(c)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
		},
	}
	content, err := json.Marshal(crd)
	if err != nil {
		b.Fatalf("the CRD of Lolcow: %v", err)
	}
	kube.InstallCRD(b, content)
}

// meadow is a namespace for Lolcows.
type meadow struct {
	b         *check.B
	client    dynamic.Interface
	namespace string
}

func newMeadow(b *check.B) *meadow {
	client, err := dynamic.NewForConfig(kube.Config(b))
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	m := &meadow{b, client, kube.Namespace(b)}
	// The runner lists what is left in v1beta1, when there is no converter any more.
	b.Cleanup(func() {
		_ = m.of(alpha).DeleteCollection(context.WithoutCancel(b.Context()), metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	return m
}

func (m *meadow) of(version schema.GroupVersionResource) dynamic.ResourceInterface {
	return m.client.Resource(version).Namespace(m.namespace)
}

func (m *meadow) must(what string, version schema.GroupVersionResource, err error) {
	m.b.Event("the check %s in %s", what, version.Version)
	if err != nil {
		m.b.Fatalf("the API server fails a client that %s in %s: %v", what, version.Version, err)
	}
}

func (m *meadow) create(version schema.GroupVersionResource, name string, spec fields) {
	_, err := m.of(version).Create(m.b.Context(), &unstructured.Unstructured{Object: fields{
		"apiVersion": version.GroupVersion().String(), "kind": "Lolcow", "spec": spec,
		"metadata": fields{"name": name, "labels": fields{"herd": "black"}, "annotations": fields{"example.com/note": "of a user"}},
	}}, metav1.CreateOptions{})
	m.must("creates "+name, version, err)
}

func (m *meadow) get(version schema.GroupVersionResource, name string) *unstructured.Unstructured {
	lolcow, err := m.of(version).Get(m.b.Context(), name, metav1.GetOptions{})
	m.must("reads "+name, version, err)
	return lolcow
}

func (m *meadow) update(version schema.GroupVersionResource, lolcow *unstructured.Unstructured) {
	_, err := m.of(version).Update(m.b.Context(), lolcow, metav1.UpdateOptions{})
	m.must("updates "+lolcow.GetName(), version, err)
}

func (m *meadow) patch(version schema.GroupVersionResource, name, patch string) {
	_, err := m.of(version).Patch(m.b.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	m.must("patches "+name+" with "+patch, version, err)
}

// writesBack reads a Lolcow in one version, writes that, and asserts that the other version is as it was.
func (m *meadow) writesBack(through, shown schema.GroupVersionResource, name string) {
	m.writeStatus(shown, name)
	before := content(m.get(shown, name))
	m.update(through, m.get(through, name))
	if after := content(m.get(shown, name)); after != before {
		m.b.Fatalf("%s was read in %s and written back. In %s it was\n%s\nand is\n%s", name, through.Version, shown.Version, before, after)
	}
}

func (m *meadow) writeStatus(version schema.GroupVersionResource, name string) {
	lolcow := m.get(version, name)
	lolcow.Object["status"] = fields{"observedGeneration": int64(1)}
	_, err := m.of(version).UpdateStatus(m.b.Context(), lolcow, metav1.UpdateOptions{})
	m.must("writes the status of "+name, version, err)
}

// content is what users and the operator have written.
func content(lolcow *unstructured.Unstructured) string {
	annotations := lolcow.GetAnnotations()
	delete(annotations, annotation)
	return text(fields{
		"labels": lolcow.GetLabels(), "annotations": annotations, "spec": lolcow.Object["spec"], "status": lolcow.Object["status"],
	})
}
