package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
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

const protobuf = "application/vnd.kubernetes.protobuf"

func world(t *testing.T) (*lesson.World, *WithT) {
	t.Helper()
	return &lesson.World{
		Out: io.Discard, Config: testserver.Config(t), Client: testserver.Client(t), Namespace: testserver.Namespace(t),
	}, NewWithT(t)
}

func TestProgram(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(out).To(MatchRegexp(`(?m)^   typed +application/vnd\.kubernetes\.protobuf +\d+ +\d+ +1\.00$`))
	g.Expect(out).To(MatchRegexp(`(?m)^   dynamic +application/json +\d+ +\d+ +1\.[3-5]\d$`))
	g.Expect(out).To(MatchRegexp(`(?m)^   metadata +application/vnd\.kubernetes\.protobuf +\d+ +\d+ +0\.[5-7]\d$`))
	g.Expect(out).To(MatchRegexp(`(?m)^   JSON of \d+ KiB came as gzip, 0\.\d+ of that on the wire`))
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

func TestEveryWayListsTheSamePods(t *testing.T) {
	t.Parallel()
	w, g := world(t)
	g.Expect(makePods(t.Context(), w, 3)).To(Succeed())
	weights := map[string]weight{}
	for _, way := range ways {
		list, err := way.list(t.Context(), w)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.items).To(Equal(3), way.name)
		weights[way.name] = list
	}
	g.Expect(weights["typed"].contentType).To(Equal(protobuf))
	g.Expect(weights["typed, told to ask for JSON"]).To(Equal(weights["dynamic"]), "the type costs nothing on the wire, the encoding does")
	g.Expect(weights["dynamic"].contentType).To(Equal("application/json"))
	g.Expect(weights["dynamic"].bytes).To(BeNumerically(">", weights["typed"].bytes))
	g.Expect(weights["metadata"].bytes).To(BeNumerically("<", weights["typed"].bytes))
}

// The types of custom resources are in no .proto file, so their typed clients get JSON.
func TestTypedClientOfACustomResourceGetsJSON(t *testing.T) {
	t.Parallel()
	w, g := world(t)
	var wire meter
	client, err := versioned.NewForConfig(wire.attach(w.Config))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.FooV1alpha1().Foos(w.Namespace).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(wire.contentType).To(Equal("application/json"))
}

// CBOR is behind a gate on both sides, off on both in 1.37: whoever would take it gets JSON.
func TestServerAnswersJSONToWhoPrefersCBOR(t *testing.T) {
	t.Parallel()
	w, g := world(t)
	// The first is what a client asks that has the gate ClientsAllowCBOR on.
	for accept, want := range map[string]int{"application/json;q=0.9,application/cbor;q=1": http.StatusOK, "application/cbor": http.StatusNotAcceptable} {
		var status int
		var wire meter
		answer := w.Client.CoreV1().RESTClient().Get().Namespace(w.Namespace).Resource("pods").
			SetHeader("Accept", accept).Do(t.Context()).StatusCode(&status).ContentType(&wire.contentType)
		g.Expect(status).To(Equal(want), "%v", answer.Error())
		g.Expect(wire.contentType).To(Equal("application/json"))
	}
}

func TestServerCompressesAbove128KiBOnly(t *testing.T) {
	t.Parallel()
	w, g := world(t)
	list := func() (string, int64, int) {
		wire := meter{gzip: true}
		list, err := dynamicThrough(t.Context(), w, &wire)
		g.Expect(err).NotTo(HaveOccurred())
		return wire.encoding, list.bytes, list.items
	}
	g.Expect(makePods(t.Context(), w, 5)).To(Succeed())
	encoding, _, _ := list()
	g.Expect(encoding).To(BeEmpty())

	g.Expect(makeMore(t.Context(), w, 5, 20)).To(Succeed())
	encoding, bytes, items := list()
	g.Expect(encoding).To(Equal("gzip"))
	g.Expect(items).To(Equal(20), "the client did not notice")
	g.Expect(bytes).To(BeNumerically("<", 128<<10))
}

func makeMore(ctx context.Context, w *lesson.World, from, to int) error {
	for i := from; i < to; i++ {
		pod := bigPod(fmt.Sprintf("web-%d", i))
		if _, err := w.Client.CoreV1().Pods(w.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// A metadata client can change and delete what it cannot see the rest of.
func TestMetadataClientChangesMetadata(t *testing.T) {
	t.Parallel()
	w, g := world(t)
	g.Expect(makePods(t.Context(), w, 1)).To(Succeed())
	client, err := metadataClient(w.Config, w.Namespace)
	g.Expect(err).NotTo(HaveOccurred())
	partial, err := client.Patch(t.Context(), "web-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(partial.Labels).To(HaveKeyWithValue("seen", "yes"))
	pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(t.Context(), "web-0", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pod.Labels).To(HaveKeyWithValue("seen", "yes"))
	g.Expect(pod.Spec.Containers).To(HaveLen(2), "the rest is as it was")
	g.Expect(client.Delete(t.Context(), "web-0", metav1.DeleteOptions{})).To(Succeed())
}

// A newer server sends fields that an older client's Go types lack. A typed client loses them, and an
// Update with what it read takes them away; a dynamic client keeps them.
func TestTypedClientLosesFieldsThatItsTypeLacks(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const answer = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":null,"invented":"tomorrow"}}`

	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), []byte(answer))
	g.Expect(err).NotTo(HaveOccurred(), "it is not even an error")
	typed, err := runtime.Encode(scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion), object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(typed)).NotTo(ContainSubstring("invented"))

	var dynamic unstructured.Unstructured
	g.Expect(dynamic.UnmarshalJSON([]byte(answer))).To(Succeed())
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

// The meter counts what is on the wire, and hands on what was meant.
func TestMeter(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const content = `{"kind":"PodList","apiVersion":"v1","items":[]}`
	var pressed bytes.Buffer
	press := gzip.NewWriter(&pressed)
	_, err := press.Write([]byte(content))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(press.Close()).To(Succeed())

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Accept-Encoding") != "gzip" {
			_, _ = io.WriteString(w, content)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(pressed.Bytes())
	}))
	t.Cleanup(server.Close)
	w := &lesson.World{Config: &rest.Config{Host: server.URL}, Namespace: "any"}
	for wire, want := range map[*meter]int{
		{}:           len(content),
		{gzip: true}: pressed.Len(),
	} {
		list, err := dynamicThrough(t.Context(), w, wire)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.bytes).To(Equal(int64(want)))
	}
}
