package main

import (
	"fmt"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestProgram(t *testing.T) {
	t.Parallel()
	testserver.ExpectOutput(t, program)
}

func builtIn(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := builtInScheme()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// The study journal prints one direction of this table for apps/v1.
func TestSchemeMapsKindToTypeAndTypeToKind(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	scheme := builtIn(t)
	for kind, goType := range scheme.KnownTypes(appsv1.SchemeGroupVersion) {
		if common(appsv1.SchemeGroupVersion.WithKind(kind)) {
			continue
		}
		object, err := scheme.New(appsv1.SchemeGroupVersion.WithKind(kind))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reflect.TypeOf(object).Elem()).To(Equal(goType))
		kinds, _, err := scheme.ObjectKinds(object)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kinds).To(ConsistOf(appsv1.SchemeGroupVersion.WithKind(kind)))
	}
}

// client-go's scheme has no conversions between the versions of a kind: the API server converts.
func TestClientsDoNotConvertBetweenVersions(t *testing.T) {
	t.Parallel()
	_, err := builtIn(t).ConvertToVersion(&autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv2.SchemeGroupVersion)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("unknown conversion")))
}

// The types of options are registered in every version.
func TestOneTypeCanBeOfManyKinds(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	kinds, _, err := builtIn(t).ObjectKinds(&metav1.DeleteOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kinds).To(ContainElements(
		corev1.SchemeGroupVersion.WithKind("DeleteOptions"), appsv1.SchemeGroupVersion.WithKind("DeleteOptions")))
}

func TestOneKindCannotHaveTwoTypes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	scheme := minimalScheme()
	pod := corev1.SchemeGroupVersion.WithKind("Pod")
	g.Expect(func() { scheme.AddKnownTypeWithName(pod, &corev1.Pod{}) }).NotTo(Panic(), "the same type again")
	g.Expect(func() { scheme.AddKnownTypeWithName(pod, &corev1.Node{}) }).To(PanicWith(ContainSubstring("Double registration of different types")))
}

func TestTypeThatIsNotRegistered(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	scheme := builtIn(t)
	foo := v1alpha1.SchemeGroupVersion.WithKind("Foo")

	_, err := scheme.New(foo)
	g.Expect(runtime.IsNotRegisteredError(err)).To(BeTrue(), "%v", err)
	_, _, err = scheme.ObjectKinds(&v1alpha1.Foo{})
	g.Expect(runtime.IsNotRegisteredError(err)).To(BeTrue(), "%v", err)
	g.Expect(runtime.IsNotRegisteredError(fmt.Errorf("decoding: %w", err))).To(BeFalse(), "it does not unwrap errors")

	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	g.Expect(scheme.New(foo)).To(BeAssignableToTypeOf(&v1alpha1.Foo{}))
	g.Expect(builtIn(t).Recognizes(foo)).To(BeFalse(), "the scheme is a copy")
}

// A package that adds types to clientgoscheme.Scheme adds them for the whole program: in this one, envtest does.
func TestClientGosSchemeIsGlobal(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	testserver.Config(t)
	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	g.Expect(clientgoscheme.Scheme.Recognizes(kind)).To(BeTrue())
	g.Expect(builtIn(t).Recognizes(kind)).To(BeFalse())
}

func TestUnstructuredNeedsNoRegistration(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	object, err := decode[*unstructured.Unstructured](unstructured.UnstructuredJSONScheme)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(object.GetObjectKind().GroupVersionKind()).To(Equal(v1alpha1.SchemeGroupVersion.WithKind("Foo")))

	// Even an empty scheme takes the kind from the object.
	kinds, _, err := runtime.NewScheme().ObjectKinds(object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kinds).To(ConsistOf(v1alpha1.SchemeGroupVersion.WithKind("Foo")))

	_, err = runtime.Decode(unstructured.UnstructuredJSONScheme, []byte(`{"metadata":{"name":"a"}}`))
	g.Expect(runtime.IsMissingKind(err)).To(BeTrue(), "%v", err)
}

// AddToGroupVersion registers Status. Without it a client cannot decode the server's error.
func TestSchemeWithoutTheCommonTypesLosesTheServersError(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	bare := runtime.NewScheme()
	bare.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	for want, scheme := range map[string]*runtime.Scheme{
		`pods "a" not found`: minimalScheme(),
		"the server could not find the requested resource (get pods a)": bare,
	} {
		client, err := clientFor(testserver.Config(t), scheme)
		g.Expect(err).NotTo(HaveOccurred())
		err = client.Get().Namespace(testserver.Namespace(t)).Resource("pods").Name("a").Do(t.Context()).Error()
		g.Expect(err).To(MatchError(want))
	}
}
