package main

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
	"example.com/workbook/02-lolcow/internal/conversion"
)

// onlyCABundle is what the operator owns of the CRD.
const onlyCABundle = `{"f:spec": {"f:conversion": {"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}}}}`

// The operator alone brings about that both versions can be read and written: it makes the certificate and writes caBundle.
func TestBothVersionsAreServed(t *testing.T) {
	t.Parallel()
	s := newConversionServer(t, holdPort(t))
	ctx := t.Context()
	lolcow := &v1beta1.Lolcow{ObjectMeta: metav1.ObjectMeta{Namespace: cow().Namespace, Name: cow().Name}, Spec: v1beta1.LolcowSpec{
		Greetings: []string{"Moo", "Baa"},
		Ports:     []v1beta1.LolcowPort{{Name: "side", NodePort: new(int32(30001))}, {Name: v1beta1.PagePort, NodePort: new(int32(30002))}},
	}}
	s.Expect(s.Create(ctx, lolcow.DeepCopy())).To(MatchError(ContainSubstring("conversion webhook")), "nothing converts yet")
	operator := s.startOperator()
	s.Eventually(func() error { return s.Create(ctx, lolcow.DeepCopy()) }).Should(Succeed(), "the API server has the new caBundle a moment later")

	// 1. The other version shows the first greeting and the page, and is what the operator reconciles.
	s.Expect(s.alpha().Spec.Greeting).To(Equal("Moo"))
	s.Expect(s.alpha().Annotations).To(HaveKey(conversion.Annotation))
	s.Eventually(func(g Gomega) {
		var deployment appsv1.Deployment
		g.Expect(s.Get(ctx, cow(), &deployment)).To(Succeed())
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--", "Moo"}))
		var beta v1beta1.Lolcow
		g.Expect(s.Get(ctx, cow(), &beta)).To(Succeed())
		g.Expect(beta.Status.Ports).To(Equal([]v1beta1.LolcowPortStatus{{Name: v1beta1.PagePort, NodePort: 30002}}))
	}).Should(Succeed())

	// 2. A writer of v1alpha1 replaces what it shows. It may be one that sends only that.
	patch := `{"spec": {"greeting": "Mee", "port": 30003}}`
	s.Expect(s.Patch(ctx, &v1alpha1.Lolcow{ObjectMeta: lolcow.ObjectMeta}, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	want := lolcow.Spec.DeepCopy()
	want.Greetings[0], want.Ports[1].NodePort, want.Replicas = "Mee", new(int32(30003)), new(int32(1))
	s.Expect(s.beta().Spec).To(Equal(*want))
	s.Expect(s.beta().Annotations).NotTo(HaveKey(conversion.Annotation))

	// 3. A writer that drops the annotation loses the rest.
	patch = `{"metadata": {"annotations": {"` + conversion.Annotation + `": null}}}`
	s.Expect(s.Patch(ctx, &v1alpha1.Lolcow{ObjectMeta: lolcow.ObjectMeta}, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	s.Expect(s.beta().Spec.Greetings).To(Equal([]string{"Mee"}))

	// 4. caBundle, and nothing else of the CRD, is the operator's; another one that starts finds all as it has to be.
	s.Expect(s.ownedByTheOperator()).To(MatchJSON(onlyCABundle))
	before := s.crd().ResourceVersion
	operator.stop()
	s.startOperator()
	s.Eventually(s.betaErr).Should(Succeed())
	s.Expect(s.beta().Spec.Greetings).To(Equal([]string{"Mee"}))
	s.Expect(s.crd().ResourceVersion).To(Equal(before))
}

// ownedByTheOperator is which fields of the CRD the operator owns.
func (s *conversionServer) ownedByTheOperator() []byte {
	s.t.Helper()
	for _, entry := range s.crd().ManagedFields {
		if entry.Manager == "lolcow-certificates" {
			return entry.FieldsV1.GetRawBytes()
		}
	}
	return nil
}

// What was written as v1alpha1 is the same after a client of v1beta1 has written it back.
func (s *steppedServer) roundTrips() {
	before, beta := s.alpha(), s.beta()
	s.Expect(beta.Spec).To(Equal(v1beta1.LolcowSpec{
		Greetings: []string{"Moo"}, Ports: []v1beta1.LolcowPort{{Name: v1beta1.PagePort, NodePort: new(int32(30001))}}, Replicas: new(int32(1)),
	}))
	s.Expect(s.Update(s.t.Context(), beta)).To(Succeed())
	after := s.alpha()
	s.Expect(after.Spec).To(Equal(before.Spec))
	s.Expect(after.Annotations).To(Equal(before.Annotations))
	s.Expect(after.UID).To(Equal(before.UID))
	s.Expect(after.Generation).To(Equal(before.Generation))
}

// Field ownership works across the versions: the API server compares what an owner applied in the version that it was applied in.
func (s *steppedServer) serverSideApply() {
	apply := func(version, owner string, spec map[string]any, options ...client.ApplyOption) (*unstructured.Unstructured, error) {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "my.domain/" + version, "kind": "Lolcow", "metadata": map[string]any{"namespace": "default", "name": "applied"}, "spec": spec,
		}}
		err := s.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(object), append(options, client.FieldOwner(owner))...)
		return object, err
	}
	both := map[string]any{"greetings": []any{"Moo", "Baa"}, "ports": []any{map[string]any{"name": "page"}, map[string]any{"name": "side"}}}
	first, err := apply("v1beta1", "new", both)
	s.Expect(err).NotTo(HaveOccurred())
	again, err := apply("v1beta1", "new", both)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(again.GetResourceVersion()).To(Equal(first.GetResourceVersion()), "the second apply writes nothing")

	_, err = apply("v1alpha1", "old", map[string]any{"greeting": "Mee"})
	s.Expect(err).To(MatchError(ContainSubstring(`conflict with "new": .spec.greetings`)))
	_, err = apply("v1alpha1", "old", map[string]any{"greeting": "Mee"}, client.ForceOwnership)
	s.Expect(err).NotTo(HaveOccurred())
	var applied v1beta1.Lolcow
	s.Expect(s.Get(s.t.Context(), client.ObjectKeyFromObject(first), &applied)).To(Succeed())
	s.Expect(applied.Spec.Greetings).To(Equal([]string{"Mee", "Baa"}))
	s.Expect(applied.Spec.Ports).To(HaveLen(2))
	_, err = apply("v1beta1", "new", both)
	s.Expect(err).To(MatchError(ContainSubstring(`conflict with "old": .spec.greeting`)))
}

// An object that was written under another schema does not fit the types. It fails the lists that it is in, and the error says
// which object it is, and which field.
func (s *steppedServer) unconvertible() {
	ctx := s.t.Context()
	crd := s.crd()
	before := crd.DeepCopy()
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["greeting"] = apiextensionsv1.JSONSchemaProps{XIntOrString: true}
	s.Expect(s.Patch(ctx, crd, client.MergeFrom(before))).To(Succeed())
	bad := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "my.domain/v1alpha1", "kind": "Lolcow", "metadata": map[string]any{"namespace": "default", "name": "bad"},
		"spec": map[string]any{"greeting": int64(5)},
	}}
	s.Eventually(func() error { return s.Create(ctx, bad.DeepCopy()) }).Should(Succeed(), "the API server has the new schema a moment later")

	s.expectConversions()
	named := MatchError(And(ContainSubstring("Lolcow default/bad in my.domain/v1alpha1"), ContainSubstring("spec.greeting")))
	s.Expect(s.Get(ctx, client.ObjectKeyFromObject(bad), &v1beta1.Lolcow{})).To(named)
	s.Expect(s.List(ctx, &v1beta1.LolcowList{}, client.InNamespace("default"))).To(named)
	s.Expect(s.Delete(ctx, bad)).To(Succeed(), "a client of the version that is stored gets rid of it")
	s.Expect(s.List(ctx, &v1beta1.LolcowList{}, client.InNamespace("default"))).To(Succeed())
}
