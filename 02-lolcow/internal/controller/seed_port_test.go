package controller

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// earlyGroup has a CRD of its own, as it is changed in the test.
const earlyGroup = "early.my.domain"

// earlySpec is what the seed's spec was in Go: a number that is not there and a zero look the same.
type earlySpec struct {
	Greeting string `json:"greeting,omitempty"`
	Port     int32  `json:"port"`
}

// earlyCRD is the Lolcow's CRD, with or without the port.
func earlyCRD(t *testing.T, withPort bool) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "my.domain_lolcows.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	crd.Name, crd.Spec.Group = "lolcows."+earlyGroup, earlyGroup
	crd.Spec.Names.ShortNames, crd.Spec.Names.Categories = nil, nil
	if !withPort {
		delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "port")
	}
	return &crd
}

func (w *world) installEarlyCRD(t *testing.T, withPort bool) {
	t.Helper()
	_, err := envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{earlyCRD(t, withPort)},
	})
	w.Expect(err).NotTo(HaveOccurred())
}

// earlySample is the seed's sample.
func (w *world) earlySample(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": earlyGroup + "/v1alpha1", "kind": "Lolcow",
		"metadata": map[string]any{"name": name, "namespace": w.namespace},
		"spec":     map[string]any{"greeting": "HELLO", "port": int64(30685)},
	}}
}

// earlyPort is the port as the seed's controller read it, and whether the stored object has one.
func (w *world) earlyPort(g Gomega, name string) (port int32, stored bool) {
	lolcow := w.earlySample(name)
	g.Expect(w.client.Get(w.ctx, w.key(name), lolcow)).To(Succeed())
	fields, _, err := unstructured.NestedMap(lolcow.Object, "spec")
	g.Expect(err).NotTo(HaveOccurred())
	var spec earlySpec
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec)).To(Succeed())
	_, stored = fields["port"]
	return spec.Port, stored
}

// Q4: why did the port come as zero? It did not come: the API server drops a field that the installed CRD does not
// know, and an int32 in Go makes a zero of what is not there.
func TestSeedQuestion_AnOldCRDLosesThePort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installEarlyCRD(t, false)

	// 1. Applied to the CRD from before there was a port: accepted, and stored without it.
	w.Eventually(func() error { return w.client.Create(w.ctx, w.earlySample("early")) }).WithTimeout(settleTimeout).Should(Succeed())
	port, stored := w.earlyPort(w, "early")
	w.Expect(stored).To(BeFalse(), "what is stored has no port")
	w.Expect(port).To(BeZero(), "and the controller reads zero")

	// 2. Who asks for it is told. kubectl asks, since 1.25 the API server itself.
	strict := &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
	w.Expect(w.client.Create(w.ctx, w.earlySample("strict"), strict)).To(MatchError(ContainSubstring(`unknown field "spec.port"`)))

	// 3. A new CRD brings nothing back, as nothing was kept. The object has to be applied again.
	w.installEarlyCRD(t, true)
	w.Eventually(func(g Gomega) {
		g.Expect(w.client.Create(w.ctx, w.earlySample("strict"), strict)).To(Succeed(), "the new CRD counts")
	}).WithTimeout(settleTimeout).Should(Succeed())
	_, stored = w.earlyPort(w, "early")
	w.Expect(stored).To(BeFalse())
	again := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"port":30685}}`))
	w.Expect(w.client.Patch(w.ctx, w.earlySample("early"), again)).To(Succeed())
	port, _ = w.earlyPort(w, "early")
	w.Expect(port).To(Equal(int32(30685)))
}

// seedEnsureService is the seed's, of the day when it first reported "port is already allocated": it looks for a
// Deployment of the Service's name.
func seedEnsureService(ctx context.Context, c client.Client, service *corev1.Service) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(service), &appsv1.Deployment{})
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, service)
	}
	return err
}

// Q5: must the Service be deleted to change its port? No. And why the seed's author saw "already allocated" where
// the Service was the author's own: the API server allocates the port before it looks whether the name is taken.
func TestSeedQuestion_TheServiceNeedNotBeDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lolcow := w.lolcow("cow", v1alpha1.LolcowSpec{Port: new(int32(30035))})
	w.Expect(seedEnsureService(w.ctx, w.client, seedService(lolcow, "backend-service"))).To(Succeed())

	// 1. The next pass makes the same Service again. With a port of its own the answer misleads; without, it does not.
	err := seedEnsureService(w.ctx, w.client, seedService(lolcow, "backend-service"))
	w.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	w.Expect(err).To(MatchError(ContainSubstring("provided port is already allocated")))
	t.Log(err)
	err = seedEnsureService(w.ctx, w.client, seedService(w.lolcow("cow", v1alpha1.LolcowSpec{}), "backend-service"))
	w.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)

	// 2. The Service that is there takes a new port in place.
	var service corev1.Service
	w.Expect(w.client.Get(w.ctx, w.key("backend-service"), &service)).To(Succeed())
	uid := service.UID
	service.Spec.Ports[0].NodePort = 30036
	w.Expect(w.client.Update(w.ctx, &service)).To(Succeed())
	w.Expect(service.UID).To(Equal(uid))
	w.Expect(service.Spec.Ports[0].NodePort).To(Equal(int32(30036)))

	// 3. And the old one is free for others.
	other := seedService(lolcow, "other")
	w.Eventually(func() error { return w.client.Create(w.ctx, other) }).WithTimeout(settleTimeout).Should(Succeed())

	// The ports are those of the whole server.
	w.Expect(w.client.Delete(w.ctx, other)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, &service)).To(Succeed())
}
