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
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred(), out)
	for _, line := range []string{
		"   Deployment           k8s.io/api/apps/v1.Deployment\n",
		"   autoscaling/v1       k8s.io/api/autoscaling/v1.HorizontalPodAutoscaler\n",
		"   autoscaling/v2       k8s.io/api/autoscaling/v2.HorizontalPodAutoscaler\n",
		"   *v1.Deployment       kind in the value: \"\", kinds in the scheme: apps/v1 Deployment\n",
		"   HorizontalPodAutoscaler  namespace /apis/autoscaling/v2/namespaces/NAMESPACE/horizontalpodautoscalers\n",
		"   ClusterRole              root      /apis/rbac.authorization.k8s.io/v1/clusterroles\n",
		"   deploy       is apps/v1 Deployment\n",
		"   unicorns     no matches for /, Resource=unicorns\n",
		"   decoding a Foo: no kind \"Foo\" is registered for version \"samplecontroller.example.com/v1alpha1\" in scheme ",
		"   asking for its kind: no kind is registered for the type v1alpha1.Foo in scheme ",
		"   after v1alpha1.AddToScheme: *v1alpha1.Foo, deploymentName \"web\", replicas 2\n",
		"   extensions/v1beta1 Deployment                        true       false\n",
		"   apiextensions.k8s.io/v1 CustomResourceDefinition     false      true\n",
		"   *unstructured.Unstructured: kind \"Foo\", replicas 2\n",
		"in this one: 2; pods listed through it: 2\n",
		"   list, into a ConfigMapList: no error\n",
		"   list, into what it may be:  no kind \"ConfigMapList\" is registered for version \"v1\"",
		"unable to decode watch event: no kind \\\"ConfigMap\\\" is registered",
	} {
		g.Expect(out).To(ContainSubstring(line))
	}
}

func builtIn(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := builtInScheme()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// What the study journey prints of apps/v1, and that it is a table of two directions.
func TestKindAndTypeLeadToEachOther(t *testing.T) {
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

func TestOneKindHasATypePerVersion(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	kind := schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	scheme := builtIn(t)
	g.Expect(scheme.VersionsForGroupKind(kind)).To(ConsistOf(autoscalingv1.SchemeGroupVersion, autoscalingv2.SchemeGroupVersion))
	g.Expect(scheme.New(kind.WithVersion("v1"))).To(BeAssignableToTypeOf(&autoscalingv1.HorizontalPodAutoscaler{}))
	g.Expect(scheme.New(kind.WithVersion("v2"))).To(BeAssignableToTypeOf(&autoscalingv2.HorizontalPodAutoscaler{}))
}

// client-go's scheme holds types, not the conversions between them: those are the API server's.
func TestClientsDoNotConvertBetweenVersions(t *testing.T) {
	t.Parallel()
	_, err := builtIn(t).ConvertToVersion(&autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv2.SchemeGroupVersion)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("unknown conversion")))
}

// The other way round, one type can be of many kinds: options are registered in every version.
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
	g.Expect(func() { scheme.AddKnownTypeWithName(pod, &corev1.Pod{}) }).NotTo(Panic(), "the same again is fine")
	g.Expect(func() { scheme.AddKnownTypeWithName(pod, &corev1.Node{}) }).To(PanicWith(ContainSubstring("Double registration of different types")))
}

func TestTypeThatIsNotRegistered(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	scheme := builtIn(t)
	foo := v1alpha1.GroupVersion.WithKind("Foo")

	_, err := decode(scheme)
	g.Expect(runtime.IsNotRegisteredError(err)).To(BeTrue(), "%v", err)
	_, err = scheme.New(foo)
	g.Expect(runtime.IsNotRegisteredError(err)).To(BeTrue(), "%v", err)
	_, _, err = scheme.ObjectKinds(&v1alpha1.Foo{})
	g.Expect(runtime.IsNotRegisteredError(err)).To(BeTrue(), "%v", err)
	g.Expect(runtime.IsNotRegisteredError(fmt.Errorf("decoding: %w", err))).To(BeFalse(), "it does not look through a wrapped error")

	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	g.Expect(decode(scheme)).To(BeAssignableToTypeOf(&v1alpha1.Foo{}))
	g.Expect(builtIn(t).Recognizes(foo)).To(BeFalse(), "client-go's own list of kinds is as it was")
}

// Whoever adds to clientgoscheme.Scheme adds for the whole program: in this one, envtest does.
func TestClientGosOwnSchemeBelongsToAll(t *testing.T) {
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
	object, err := runtime.Decode(unstructured.UnstructuredJSONScheme, []byte(manifest))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(object.GetObjectKind().GroupVersionKind()).To(Equal(v1alpha1.GroupVersion.WithKind("Foo")))

	// Any scheme takes it for what it says it is.
	kinds, _, err := runtime.NewScheme().ObjectKinds(object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kinds).To(ConsistOf(v1alpha1.GroupVersion.WithKind("Foo")))

	_, err = runtime.Decode(unstructured.UnstructuredJSONScheme, []byte(`{"metadata":{"name":"a"}}`))
	g.Expect(runtime.IsMissingKind(err)).To(BeTrue(), "it has to say it, though: %v", err)
}

// Without AddToGroupVersion a scheme cannot read what a server says when it refuses.
func TestSchemeWithoutTheCommonTypesLosesTheServersWords(t *testing.T) {
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
