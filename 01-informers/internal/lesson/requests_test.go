package lesson_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/lesson"
)

func TestARequestPrintsTheSameInEveryRun(t *testing.T) {
	t.Parallel()
	for want, request := range map[string]lesson.Request{
		"GET pods: 200":                                             {Query: url.Values{"timeoutSeconds": {"312"}}, Status: 200},
		"GET pods?resourceVersion=0: 200":                           {Query: url.Values{"resourceVersion": {"0"}}, Status: 200},
		"GET pods?watch=true&resourceVersion=N: 410":                {Query: url.Values{"resourceVersion": {"8213"}, "watch": {"true"}}, Status: 410},
		"GET pods?continue=T&limit=2: 200":                          {Query: url.Values{"limit": {"2"}, "continue": {"eyJ2Ijo"}}, Status: 200},
		"GET pods?watch=true&allowWatchBookmarks=true: no response": {Query: url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}}, Err: http.ErrHandlerTimeout},
	} {
		request.Method, request.Path = http.MethodGet, "/api/v1/namespaces/x/pods"
		NewWithT(t).Expect(request.String()).To(Equal(want))
	}
}

func TestRequestsRecordRequestsAndResponses(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	var requests lesson.Requests
	config := &rest.Config{Host: server.URL}
	client, err := kubernetes.NewForConfig(requests.Record(config))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.WrapTransport).To(BeNil(), "the original config is unchanged")

	_, err = client.CoreV1().Pods("x").List(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
	g.Expect(err).To(HaveOccurred())
	server.Close()
	_, err = client.CoreV1().Pods("x").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: new(true)})
	g.Expect(err).To(HaveOccurred())

	all := requests.Take()
	g.Expect(all).To(HaveLen(2))
	g.Expect(all[0].Path).To(Equal("/api/v1/namespaces/x/pods"))
	g.Expect(all[0].Status).To(Equal(http.StatusNotFound))
	g.Expect(all[0].Query.Get("resourceVersion")).To(Equal("7"))
	g.Expect(all[0].Watch()).To(BeFalse())
	g.Expect(all[1].Err).To(HaveOccurred())
	g.Expect(all[1].Watch()).To(BeTrue())
	g.Expect(requests.All()).To(BeEmpty(), "Take has removed them")
}
