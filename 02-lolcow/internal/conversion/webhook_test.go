package conversion

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
)

// post sends what an API server sends.
func post(t *testing.T, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	h, err := newHandler(scheme)
	g.Expect(err).NotTo(HaveOccurred())
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/convert", bytes.NewReader(body)))
	return recorder
}

func postObjects(t *testing.T, version string, objects ...string) *apiextensionsv1.ConversionResponse {
	t.Helper()
	g := NewWithT(t)
	request := &apiextensionsv1.ConversionRequest{UID: "1", DesiredAPIVersion: version}
	for _, object := range objects {
		request.Objects = append(request.Objects, runtime.RawExtension{Raw: []byte(object)})
	}
	body, err := json.Marshal(apiextensionsv1.ConversionReview{Request: request})
	g.Expect(err).NotTo(HaveOccurred())
	recorder := post(t, body)
	g.Expect(recorder.Code).To(Equal(http.StatusOK))
	var review apiextensionsv1.ConversionReview
	g.Expect(json.Unmarshal(recorder.Body.Bytes(), &review)).To(Succeed())
	g.Expect(review.Request).To(BeNil())
	g.Expect(review.Response.UID).To(BeEquivalentTo("1"))
	return review.Response
}

const (
	moo = `{"apiVersion": "my.domain/v1alpha1", "kind": "Lolcow", "metadata": {"namespace": "a", "name": "moo"}, "spec": {"greeting": "Moo"}}`
	baa = `{"apiVersion": "my.domain/v1alpha1", "kind": "Lolcow", "metadata": {"namespace": "a", "name": "baa"}, "spec": {"greeting": "Baa"}}`
)

func TestConversionsOfAList(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	response := postObjects(t, "my.domain/v1beta1", moo, baa)
	g.Expect(response.Result.Status).To(Equal(metav1.StatusSuccess))
	var first, second v1beta1.Lolcow
	g.Expect(response.ConvertedObjects).To(HaveLen(2))
	g.Expect(json.Unmarshal(response.ConvertedObjects[0].Raw, &first)).To(Succeed())
	g.Expect(json.Unmarshal(response.ConvertedObjects[1].Raw, &second)).To(Succeed())
	g.Expect(first.TypeMeta).To(Equal(metav1.TypeMeta{APIVersion: "my.domain/v1beta1", Kind: "Lolcow"}))
	g.Expect(first.Spec.Greetings).To(Equal([]string{"Moo"}))
	g.Expect(second.Name).To(Equal("baa"))
	g.Expect(second.Spec.Greetings).To(Equal([]string{"Baa"}))
}

// One object fails the list that it is in, so the error says which.
func TestTheErrorNamesObjectAndField(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		version, object string
		want            []string
	}{
		"a value of another type": {"my.domain/v1beta1",
			`{"apiVersion": "my.domain/v1alpha1", "kind": "Lolcow", "metadata": {"namespace": "a", "name": "bad"}, "spec": {"greeting": 5}}`,
			[]string{"decoding Lolcow a/bad in my.domain/v1alpha1: ", "spec.greeting of type string"}},
		"an unknown kind": {"my.domain/v1beta1",
			`{"apiVersion": "my.domain/v1alpha1", "kind": "Owl", "metadata": {"namespace": "a", "name": "bad"}}`,
			[]string{"decoding Owl a/bad in my.domain/v1alpha1: ", `no kind "Owl" is registered`}},
		"an unknown version": {"my.domain/v1", baa,
			[]string{"converting Lolcow a/moo in my.domain/v1alpha1 to my.domain/v1: ", `no kind "Lolcow" is registered for version "my.domain/v1"`}},
		"the same version": {"my.domain/v1alpha1", baa,
			[]string{"converting Lolcow a/moo in my.domain/v1alpha1 to my.domain/v1alpha1: ", "not allowed"}},
		"no object": {"my.domain/v1beta1", `5`, []string{"decoding "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			response := postObjects(t, test.version, moo, test.object)
			g.Expect(response.Result.Status).To(Equal(metav1.StatusFailure))
			g.Expect(response.ConvertedObjects).To(BeEmpty())
			for _, part := range test.want {
				g.Expect(response.Result.Message).To(ContainSubstring(part))
			}
		})
	}
}

func TestNoRequest(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"": "EOF", "rubbish": "invalid character 'r'", "{}": "it has no request", `{"response": {}}`: "it has no request",
		strings.Repeat(" ", maxBody+1): "request body too large",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			response := post(t, []byte(body))
			g.Expect(response.Code).To(Equal(http.StatusBadRequest))
			g.Expect(response.Body.String()).To(And(HavePrefix("reading a ConversionReview: "), ContainSubstring(want)))
		})
	}
}
