package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestProgram(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(out).To(MatchRegexp(`(?m)^   typed +application/vnd\.kubernetes\.protobuf +\d+ +\d+ +1\.00$`))
	for _, client := range []string{"typed, JSON requested", "dynamic"} { // the size depends on the encoding, not on the Go type
		g.Expect(out).To(MatchRegexp(`(?m)^   ` + client + ` +application/json +\d+ +\d+ +1\.[3-5]\d$`))
	}
	g.Expect(out).To(MatchRegexp(`(?m)^   metadata +application/vnd\.kubernetes\.protobuf +\d+ +\d+ +0\.[5-7]\d$`))
	for _, line := range []string{
		"   typed     *v1.Pod                      web              example.com/none/web Running\n",
		"   dynamic   *unstructured.Unstructured   web              example.com/none/web Running\n",
		"   metadata  *v1.PartialObjectMetadata    web              -                -\n",
		"   apiVersion and kind: typed (empty), dynamic v1 Pod, metadata (empty).\n",
	} {
		g.Expect(out).To(ContainSubstring(line))
	}
}

// Custom resources have no protobuf encoding.
func TestTypedClientOfACustomResourceGetsJSON(t *testing.T) {
	t.Parallel()
	env, g := testserver.LessonEnv(t), NewWithT(t)
	var wire meter
	client, err := versioned.NewForConfig(wire.attach(env.Config))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.FooV1alpha1().Foos(env.Namespace).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(wire.contentType).To(Equal("application/json"))
}

// A metadata client can patch and delete objects although it does not read their spec.
func TestMetadataClientPatchesAndDeletes(t *testing.T) {
	t.Parallel()
	env, g := testserver.LessonEnv(t), NewWithT(t)
	createPods(t.Context(), env, 1)
	client := metadataClient(env.Config, env.Namespace)
	partial, err := client.Patch(t.Context(), "web-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(partial.Labels).To(HaveKeyWithValue("seen", "yes"))
	pod, err := env.Client.CoreV1().Pods(env.Namespace).Get(t.Context(), "web-0", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pod.Labels).To(HaveKeyWithValue("seen", "yes"))
	g.Expect(pod.Spec.Containers).To(HaveLen(2), "the spec is unchanged")
	g.Expect(client.Delete(t.Context(), "web-0", metav1.DeleteOptions{})).To(Succeed())
}

// A newer server sends fields that an older client's Go types lack. A typed client drops them, and its next Update
// removes them from the object. A dynamic client keeps them.
func TestTypedClientLosesFieldsThatItsTypeLacks(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const response = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":null,"invented":"tomorrow"}}`

	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), []byte(response))
	g.Expect(err).NotTo(HaveOccurred(), "dropping a field is no error")
	typed, err := runtime.Encode(scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion), object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(typed)).NotTo(ContainSubstring("invented"))

	var dynamic unstructured.Unstructured
	g.Expect(dynamic.UnmarshalJSON([]byte(response))).To(Succeed())
	g.Expect(dynamic.MarshalJSON()).To(ContainSubstring(`"invented":"tomorrow"`))
}
