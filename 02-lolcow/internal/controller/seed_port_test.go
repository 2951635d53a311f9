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

func (f *testEnv) installEarlyCRD(t *testing.T, withPort bool) {
	t.Helper()
	_, err := envtest.InstallCRDs(f.config, envtest.CRDInstallOptions{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{earlyCRD(t, withPort)},
	})
	f.Expect(err).NotTo(HaveOccurred())
}

// earlySample is the seed's sample.
func (f *testEnv) earlySample(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": earlyGroup + "/v1alpha1", "kind": "Lolcow",
		"metadata": map[string]any{"name": name, "namespace": f.namespace},
		"spec":     map[string]any{"greeting": "HELLO", "port": int64(30685)},
	}}
}

// earlyPort is the port as the seed's controller read it, and whether the stored object has one.
func (f *testEnv) earlyPort(g Gomega, name string) (port int32, stored bool) {
	lolcow := f.earlySample(name)
	g.Expect(f.client.Get(f.ctx, f.key(name), lolcow)).To(Succeed())
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
	f := newTestEnv(t)
	f.installEarlyCRD(t, false)

	// 1. Applied to the CRD from before there was a port: accepted, and stored without it.
	f.Eventually(func() error { return f.client.Create(f.ctx, f.earlySample("early")) }).WithTimeout(settleTimeout).Should(Succeed())
	port, stored := f.earlyPort(f, "early")
	f.Expect(stored).To(BeFalse(), "what is stored has no port")
	f.Expect(port).To(BeZero(), "and the controller reads zero")

	// 2. A client that asks for validation gets an error. kubectl asks for it, since 1.25 of the API server itself.
	strict := &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
	f.Expect(f.client.Create(f.ctx, f.earlySample("strict"), strict)).To(MatchError(ContainSubstring(`unknown field "spec.port"`)))

	// 3. A new CRD brings nothing back, as nothing was kept. The object has to be applied again.
	f.installEarlyCRD(t, true)
	f.Eventually(func(g Gomega) {
		g.Expect(f.client.Create(f.ctx, f.earlySample("strict"), strict)).To(Succeed(), "the new CRD counts")
	}).WithTimeout(settleTimeout).Should(Succeed())
	_, stored = f.earlyPort(f, "early")
	f.Expect(stored).To(BeFalse())
	again := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"port":30685}}`))
	f.Expect(f.client.Patch(f.ctx, f.earlySample("early"), again)).To(Succeed())
	port, _ = f.earlyPort(f, "early")
	f.Expect(port).To(Equal(int32(30685)))
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
	f := newTestEnv(t)
	lolcow := f.lolcow("cow", v1alpha1.LolcowSpec{Port: new(int32(30035))})
	f.Expect(seedEnsureService(f.ctx, f.client, seedService(lolcow, "backend-service"))).To(Succeed())

	// 1. The next reconciliation creates the same Service again. With a port of its own the response misleads; without, it does not.
	err := seedEnsureService(f.ctx, f.client, seedService(lolcow, "backend-service"))
	f.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	f.Expect(err).To(MatchError(ContainSubstring("provided port is already allocated")))
	t.Log(err)
	err = seedEnsureService(f.ctx, f.client, seedService(f.lolcow("cow", v1alpha1.LolcowSpec{}), "backend-service"))
	f.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)

	// 2. The Service that is there takes a new port in place.
	var service corev1.Service
	f.Expect(f.client.Get(f.ctx, f.key("backend-service"), &service)).To(Succeed())
	uid := service.UID
	service.Spec.Ports[0].NodePort = 30036
	f.Expect(f.client.Update(f.ctx, &service)).To(Succeed())
	f.Expect(service.UID).To(Equal(uid))
	f.Expect(service.Spec.Ports[0].NodePort).To(Equal(int32(30036)))

	// 3. And the old one is free for others.
	other := seedService(lolcow, "other")
	f.Eventually(func() error { return f.client.Create(f.ctx, other) }).WithTimeout(settleTimeout).Should(Succeed())

	// The ports are those of the whole server.
	f.Expect(f.client.Delete(f.ctx, other)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, &service)).To(Succeed())
}
