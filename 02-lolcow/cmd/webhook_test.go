package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
	"example.com/workbook/02-lolcow/internal/conversion"
)

const secretsPath = "/api/v1/namespaces/lolcow-system/secrets"

// crdServer acts as an API server that has a CRD with a conversion webhook, no Secret, and rejects all lists: the caches of the
// operator never fill.
type crdServer struct {
	*httptest.Server
	caBundles chan []byte
	// errs are of patches that cannot be read.
	errs    chan error
	unknown chan string
}

func newCRDServer(t *testing.T) *crdServer {
	t.Helper()
	paths := maps.Clone(discovery)
	paths["/apis"] = `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [
		{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]},
		{"name": "apiextensions.k8s.io", "versions": [{"groupVersion": "apiextensions.k8s.io/v1", "version": "v1"}]},
		{"name": "my.domain", "versions": [{"groupVersion": "my.domain/v1alpha1", "version": "v1alpha1"}]}]}`
	paths["/api/v1"] = `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
		{"name": "pods", "namespaced": true, "kind": "Pod", "verbs": ["list", "watch"]},
		{"name": "secrets", "namespaced": true, "kind": "Secret", "verbs": ["get", "create", "update"]},
		{"name": "services", "namespaced": true, "kind": "Service", "verbs": ["list", "watch"]}]}`
	paths["/apis/apiextensions.k8s.io/v1"] = `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apiextensions.k8s.io/v1", "resources": [
		{"name": "customresourcedefinitions", "namespaced": false, "kind": "CustomResourceDefinition", "verbs": ["get", "patch"]}]}`
	const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/lolcows.my.domain"
	paths[crdPath] = `{"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "lolcows.my.domain", "uid": "1"},
		"spec": {"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "lolcow-system", "name": "lolcow-webhook-service"}}}}}}`

	s := &crdServer{caBundles: make(chan []byte, 10), errs: make(chan error, 10), unknown: make(chan string, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		content, found := paths[r.URL.Path]
		switch {
		case r.Method == http.MethodPatch && found:
			body, err := io.ReadAll(r.Body)
			var crd apiextensionsv1.CustomResourceDefinition
			if err = errors.Join(err, yaml.Unmarshal(body, &crd)); err != nil {
				s.errs <- err
			} else {
				s.caBundles <- crd.Spec.Conversion.Webhook.ClientConfig.CABundle
			}
			fmt.Fprint(w, content)
		case r.Method == http.MethodGet && found:
			fmt.Fprint(w, content)
		case r.Method == http.MethodGet && r.URL.Path == secretsPath+"/lolcow-webhook-certificate":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case r.Method == http.MethodPost && r.URL.Path == secretsPath:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"lolcow-system","name":"lolcow-webhook-certificate","resourceVersion":"1"}}`)
		default:
			select {
			case s.unknown <- r.Method + " " + r.URL.Path:
			default:
			}
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// The caches need the webhook, so it converts, and is ready, before they are full; with a certificate that the CRD trusts.
func TestItConvertsBeforeItsCachesAreFull(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	server := newCRDServer(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: a,
contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: %q}}]}`, server.URL), 0o600)).To(Succeed())
	webhook := holdPort(t)
	operator := startOperator(t, kubeconfig, webhook)

	var caBundle []byte
	g.Expect(server.errs).NotTo(Receive())
	g.Expect(server.caBundles).To(Receive(&caBundle))
	g.Eventually(server.unknown).Should(Receive(HaveSuffix("/lolcows")), "it tries to fill its caches")

	alpha := v1alpha1.Lolcow{
		TypeMeta:   metav1.TypeMeta{APIVersion: "my.domain/v1alpha1", Kind: "Lolcow"},
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Annotations: map[string]string{conversion.Annotation: `{"greetings":["Baa"]}`}},
		Spec:       v1alpha1.LolcowSpec{Greeting: "Moo"},
	}
	var beta v1beta1.Lolcow
	g.Expect(json.Unmarshal(convert(t, g, portOf(webhook), caBundle, "my.domain/v1beta1", alpha), &beta)).To(Succeed())
	g.Expect(beta.APIVersion).To(Equal("my.domain/v1beta1"))
	g.Expect(beta.Spec.Greetings).To(Equal([]string{"Moo", "Baa"}))
	var again v1alpha1.Lolcow
	g.Expect(json.Unmarshal(convert(t, g, portOf(webhook), caBundle, "my.domain/v1alpha1", beta), &again)).To(Succeed())
	g.Expect(again).To(Equal(alpha))

	operator.stop()
}

// The name of the Service, which the certificate is for, needs a namespace; and 9443 without a colon is no address.
func TestConversionFlagsThatCannotWork(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]*conversionWebhook{
		"POD_NAMESPACE":      {address: ":9443"},
		"missing port":       {address: "9443", namespace: webhookNamespace},
		"invalid syntax":     {address: ":https", namespace: webhookNamespace},
		"value out of range": {address: ":65536", namespace: webhookNamespace},
	} {
		NewWithT(t).Expect(w.setup(t.Context(), nil)).To(MatchError(ContainSubstring(want)))
	}
}

// convert asks the webhook as an API server does: at the name of the Service, and trusting caBundle only.
func convert(t *testing.T, g *WithT, port int, caBundle []byte, version string, object any) []byte {
	t.Helper()
	raw, err := json.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	review, err := json.Marshal(apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"},
		Request:  &apiextensionsv1.ConversionRequest{UID: "1", DesiredAPIVersion: version, Objects: []runtime.RawExtension{{Raw: raw}}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(caBundle)).To(BeTrue())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "lolcow-webhook-service.lolcow-system.svc"}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d/convert", port), bytes.NewReader(review))
	g.Expect(err).NotTo(HaveOccurred())
	response, err := (&http.Client{Transport: transport}).Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	var reply apiextensionsv1.ConversionReview
	g.Expect(json.NewDecoder(response.Body).Decode(&reply)).To(Succeed())
	g.Expect(reply.Response.Result.Status).To(Equal(metav1.StatusSuccess), reply.Response.Result.Message)
	g.Expect(reply.Response.ConvertedObjects).To(HaveLen(1))
	return reply.Response.ConvertedObjects[0].Raw
}
