package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
	"example.com/workbook/01-informers/internal/lesson"
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
	g.Expect(out).To(MatchRegexp(`(?m)^   JSON of \d+ KiB was sent as gzip, 0\.\d+ of that on the wire`))
	for _, line := range []string{
		"   typed     *v1.Pod                      web              example.com/none/web Running\n",
		"   dynamic   *unstructured.Unstructured   web              example.com/none/web Running\n",
		"   metadata  *v1.PartialObjectMetadata    web              -                -\n",
		"   apiVersion and kind: typed (empty), dynamic v1 Pod, metadata (empty).\n",
	} {
		g.Expect(out).To(ContainSubstring(line))
	}
}

func TestNumberOfPodsIsBounded(t *testing.T) {
	for _, value := range []string{"0", "501", "-1", "many", ""} {
		_, err := testserver.Lesson(t, program, "--pods="+value)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("it must be a number from 1 to 500")))
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

// CBOR has a feature gate in client and server. In 1.37 both are off by default.
func TestServerSendsJSONToAClientThatPrefersCBOR(t *testing.T) {
	t.Parallel()
	env, g := testserver.LessonEnv(t), NewWithT(t)
	// A client with the feature gate ClientsAllowCBOR sends the first of these headers.
	for accept, want := range map[string]int{"application/json;q=0.9,application/cbor;q=1": http.StatusOK, "application/cbor": http.StatusNotAcceptable} {
		var status int
		var wire meter
		result := env.Client.CoreV1().RESTClient().Get().Namespace(env.Namespace).Resource("pods").
			SetHeader("Accept", accept).Do(t.Context()).StatusCode(&status).ContentType(&wire.contentType)
		g.Expect(status).To(Equal(want), "%v", result.Error())
		g.Expect(wire.contentType).To(Equal("application/json"))
	}
}

func TestServerCompressesAbove128KiBOnly(t *testing.T) {
	t.Parallel()
	env, g := testserver.LessonEnv(t), NewWithT(t)
	list := func() (items int, wire meter) {
		wire.gzip = true
		items, err := listDynamic(t.Context(), env, &wire)
		g.Expect(err).NotTo(HaveOccurred())
		return items, wire
	}
	g.Expect(createPods(t.Context(), env, 0, 5)).To(Succeed())
	_, wire := list()
	g.Expect(wire.encoding).To(BeEmpty())

	g.Expect(createPods(t.Context(), env, 5, 20)).To(Succeed())
	items, wire := list()
	g.Expect(wire.encoding).To(Equal("gzip"))
	g.Expect(items).To(Equal(20), "the client decompresses it")
	g.Expect(wire.bytes).To(BeNumerically("<", 128<<10))
}

// A metadata client can patch and delete objects although it does not read their spec.
func TestMetadataClientPatchesAndDeletes(t *testing.T) {
	t.Parallel()
	env, g := testserver.LessonEnv(t), NewWithT(t)
	g.Expect(createPods(t.Context(), env, 0, 1)).To(Succeed())
	client, err := metadataClient(env.Config, env.Namespace)
	g.Expect(err).NotTo(HaveOccurred())
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

func TestDynamicFieldsHaveTheTypesOfJSON(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ pod, want string }{
		"no spec":             {`{}`, "a pod without containers (found: false)"},
		"no containers":       {`{"spec":{"containers":[]}}`, "a pod without containers (found: true)"},
		"containers no list":  {`{"spec":{"containers":"web"}}`, "accessor error"},
		"container no object": {`{"spec":{"containers":["web"]}}`, "a container is a string"},
		"image no string":     {`{"spec":{"containers":[{"image":7}]}}`, "is of the type int64, expected string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var object unstructured.Unstructured
			json := strings.Replace(test.pod, "{", `{"kind":"Pod","apiVersion":"v1",`, 1)
			g.Expect(object.UnmarshalJSON([]byte(strings.Replace(json, ",}", "}", 1)))).To(Succeed())
			_, _, err := imageAndPhase(&object)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

// The meter counts compressed bytes, and the client reads decompressed ones.
func TestMeter(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const content = `{"kind":"PodList","apiVersion":"v1","items":[]}`
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err := writer.Write([]byte(content))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writer.Close()).To(Succeed())

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Accept-Encoding") != "gzip" {
			_, _ = io.WriteString(w, content)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(compressed.Bytes())
	}))
	t.Cleanup(server.Close)
	env := &lesson.Env{Config: &rest.Config{Host: server.URL}, Namespace: "any"}
	for wire, want := range map[*meter]int{
		{}:           len(content),
		{gzip: true}: compressed.Len(),
	} {
		_, err := listDynamic(t.Context(), env, wire)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(wire.bytes).To(Equal(int64(want)))
	}
}
