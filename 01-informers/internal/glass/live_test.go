package glass

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestStagesOfAnItem(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := open(t, "configmaps", Options{}).synced(t)
	messages := s.follow(t, s.state(t).Cursor, "")
	s.create(t, "apple")
	events, cursor := until(t, messages, done("apple"))
	var path []string
	items := map[string]bool{}
	for _, event := range events {
		if event.Key == s.ns+"/apple" {
			path = append(path, string(event.Stage)+"/"+event.Type)
			items[event.Item] = true
			g.Expect(event.Text).NotTo(BeEmpty())
		}
	}
	g.Expect(items).To(HaveLen(1))
	g.Expect(path).To(Equal([]string{
		"watch/ADDED", "queue/Added", "store/add", "handler/add", "waiting/added", "working/started", "done/done",
	}))
	state := s.state(t)
	g.Expect(state.Objects).To(ConsistOf(HaveField("Key", s.ns+"/apple")))
	g.Expect(state.Items).To(ContainElement(HaveField("Stage", handmade.StageDone)))
	g.Expect(state.Resource).To(Equal(Resource{Name: "configmaps", Version: "v1", Namespace: s.ns, Namespaced: true, Workers: 1}))
	g.Expect(state.Clients).To(Equal(1))

	// A browser that reconnects gets each event once.
	s.create(t, "pear")
	again, _ := until(t, s.follow(t, "", cursor), done("pear"))
	g.Expect(again[0].Seq).To(Equal(events[len(events)-1].Seq + 1))
	for i, event := range again {
		g.Expect(event.Seq).To(Equal(again[0].Seq + uint64(i)))
	}
}

func TestTooManyPagesAreRejected(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	limits := DefaultLimits()
	limits.Clients = 1
	s := open(t, "configmaps", Options{Limits: limits}).synced(t)
	s.follow(t, "", "")
	code, body := s.request(t, http.MethodGet, "/events")
	g.Expect(code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(body).To(Equal("too many pages are connected already\n"))
}

func TestStartsPaused(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := open(t, "configmaps", Options{Paused: true})
	g.Eventually(func() []Held { return s.state(t).Now.Held }, soon).Should(ConsistOf(HaveField("To", handmade.StageList)))
	g.Expect(s.state(t).Now.Seq).To(BeZero())
}

func TestFailEvery(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := open(t, "configmaps", Options{FailEvery: 2}).synced(t)
	messages := s.follow(t, s.state(t).Cursor, "")
	s.create(t, "apple")
	until(t, messages, done("apple"))
	s.create(t, "pear")
	events, _ := until(t, messages, done("pear"))
	g.Expect(events).To(ContainElement(And(
		HaveField("Stage", handmade.StageBackoff), HaveField("Key", s.ns+"/pear"), HaveField("Attempt", 1), HaveField("DelayMs", BeEquivalentTo(500)),
		HaveField("Text", ContainSubstring("a simulated failure")),
	)))
	g.Expect(events).To(ContainElement(HaveField("Type", "returned")))
}

func TestObject(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := open(t, "configmaps", Options{}).synced(t)
	s.create(t, "apple")
	path := "/object?key=" + url.QueryEscape(s.ns+"/apple")
	g.Eventually(func() string { _, body := s.request(t, http.MethodGet, path); return body }, soon).
		Should(And(ContainSubstring("colour: red"), ContainSubstring("kind: ConfigMap"), Not(ContainSubstring("managedFields"))))
	code, body := s.request(t, http.MethodGet, "/object?key=missing")
	g.Expect(code).To(Equal(http.StatusNotFound))
	g.Expect(body).To(Equal("the store has no \"missing\"\n"))
	code, _ = s.request(t, http.MethodGet, "/object")
	g.Expect(code).To(Equal(http.StatusBadRequest))
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := open(t, "configmaps", Options{})
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/", http.StatusOK},
		{http.MethodHead, "/", http.StatusOK},
		{http.MethodGet, "/nothing.js", http.StatusNotFound},
		{http.MethodGet, "/../server.go", http.StatusNotFound},
		{http.MethodGet, "/pause", http.StatusNotFound},
		{http.MethodPost, "/state", http.StatusMethodNotAllowed},
		{http.MethodDelete, "/object", http.StatusMethodNotAllowed},
	} {
		code, _ := s.request(t, test.method, test.path)
		NewWithT(t).Expect(code).To(Equal(test.want), test.method+" "+test.path)
	}
}

func TestAnyResource(t *testing.T) {
	t.Parallel()
	t.Run("a custom resource", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		s := open(t, "foos", Options{}).synced(t)
		client, err := dynamic.NewForConfig(testserver.Config(t))
		g.Expect(err).NotTo(HaveOccurred())
		foo := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "samplecontroller.example.com/v1alpha1", "kind": "Foo", "metadata": map[string]any{"name": "one"},
			"spec": map[string]any{"deploymentName": "one", "replicas": int64(1)},
		}}
		resource := client.Resource(schema.GroupVersionResource{Group: "samplecontroller.example.com", Version: "v1alpha1", Resource: "foos"}).Namespace(s.ns)
		_, err = resource.Create(t.Context(), foo, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(func() []Object { return s.state(t).Objects }, soon).Should(ConsistOf(HaveField("Key", s.ns+"/one")))
	})
	t.Run("a cluster-scoped resource", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		s := open(t, "ns", Options{}).synced(t)
		g.Expect(s.state(t).Objects).To(ContainElement(HaveField("Key", s.ns)))
		g.Expect(s.state(t).Resource.Namespace).To(BeEmpty())
		_, body := s.request(t, http.MethodGet, "/object?key="+s.ns)
		g.Expect(body).To(ContainSubstring("kind: Namespace"))
	})
}

// TestNothingGrowsWhilePaused makes more changes than an HTTP/2 client buffers of a stream that is not read (4 MB).
func TestNothingGrowsWhilePaused(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := open(t, "configmaps", Options{}).synced(t)
	s.create(t, "apple")
	g.Eventually(func() Counts { return s.state(t).Now.Counts }, soon).Should(Equal(Counts{Store: 1}))
	before := s.post(t, "/pause").Now
	for i := range 120 {
		patch := fmt.Appendf(nil, `{"data":{"colour":"%d","bulk":"%s"}}`, i, strings.Repeat("x", 50_000))
		_, err := s.client.CoreV1().ConfigMaps(s.ns).Patch(t.Context(), "apple", types.MergePatchType, patch, metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	paused := s.state(t).Now
	g.Expect(paused.Totals).To(Equal(before.Totals), "no item moved")
	g.Expect(paused.Held).To(HaveLen(1), "one item waits, and no more events are read")

	// The API server may have ended the watch that was not read. In both cases the store gets the latest state.
	s.post(t, "/resume")
	g.Eventually(func() string {
		_, body := s.request(t, http.MethodGet, "/object?key="+url.QueryEscape(s.ns+"/apple"))
		_, colour, _ := strings.Cut(body, "colour: ")
		colour, _, _ = strings.Cut(colour, "\n")
		return colour
	}, 3*soon).Should(Equal(`"119"`), func() string {
		log := ""
		for _, event := range s.state(t).Log {
			log += fmt.Sprintf("%d %d %s %s %s\n", event.Seq, event.Time, event.Stage, event.Type, event.Text)
		}
		return log
	})
}
