package main

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestProgram(t *testing.T) {
	t.Parallel()
	testserver.ExpectOutput(t, program)
}

// The study journal describes the generated lister as the one that lists from the API server. There are two
// listers, and only one of them sends requests.
func TestSeedQuestion_WhichListerTalksToTheServer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	env := testserver.LessonEnv(t)
	env.CreatePods(t.Context(), "web-0", "web-1", "web-2")
	namespace := env.Namespace
	requests, client := counted(testserver.Config(t))

	var fromServer cache.ListerWithContext = cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	for range 5 {
		_, err := fromServer.ListWithContext(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(requests.String()).To(Equal("5 (list 5)"), "cache.Lister: one request for each call")

	requests.Take()
	informer := newInformer(client, namespace)
	defer informer.stop()
	informer.start(t.Context())
	_, isOne := any(informer.lister).(cache.ListerWithContext)
	g.Expect(isOne).To(BeFalse(), "the generated lister is not a cache.Lister: it has neither context nor options")
	g.Expect(requests.String()).To(Equal("1 (watch 1)"), "the informer sends one request")

	requests.Take()
	for range 1000 {
		pods, err := informer.lister.List(labels.Everything())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods).To(HaveLen(3))
		_, err = informer.lister.Pods(namespace).Get("none")
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	}
	g.Expect(requests.String()).To(Equal("0"), "the lister sends none, not for an object that it does not have, either")
}
