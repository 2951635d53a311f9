package main

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/lesson/lessontest"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestProgram(t *testing.T) {
	t.Parallel()
	lessontest.ExpectOutput(t, program)
}

// testEnv returns an Env with these Pods in a namespace of its own.
func testEnv(t *testing.T, pods ...string) *lesson.Env {
	t.Helper()
	env := lessontest.Env(t)
	NewWithT(t).Expect(env.CreatePods(t.Context(), pods...)).To(Succeed())
	return env
}

// The study journal describes the generated lister as the one that lists from the API server. There are two
// listers, and only one of them sends requests.
func TestSeedQuestion_WhichListerTalksToTheServer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testEnv(t, "web-0", "web-1", "web-2").Namespace
	requests, client, err := counted(testserver.Config(t))
	g.Expect(err).NotTo(HaveOccurred())

	var fromServer cache.ListerWithContext = cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	for range 5 {
		_, err := fromServer.ListWithContext(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(requests.String()).To(Equal("5 (list 5)"), "cache.Lister: one request for each call")

	requests.Take()
	informer := newInformer(client, namespace)
	g.Expect(informer.start(t.Context())).To(Succeed())
	defer informer.stop()
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

// Before the informer is started, the lister returns no error.
func TestTheListerOfAnInformerThatIsNotStartedIsEmpty(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	env := testEnv(t, "web-0")
	informer := newInformer(env.Client, env.Namespace)
	g.Expect(informer.lister.List(labels.Everything())).To(BeEmpty())
	_, err := informer.lister.Pods(env.Namespace).Get("web-0")
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())

	g.Expect(informer.start(t.Context())).To(Succeed())
	defer informer.stop()
	g.Expect(informer.lister.List(labels.Everything())).To(HaveLen(1))
}

// NotFound from a lister is about the cache. A controller that then creates the object has to handle
// AlreadyExists.
func TestNotFoundFromAListerIsAboutTheCache(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	env := testEnv(t)
	informer := newInformer(env.Client, env.Namespace)
	g.Expect(informer.start(t.Context())).To(Succeed())
	informer.stop()
	g.Expect(env.CreatePods(t.Context(), "web-0")).To(Succeed())

	_, err := informer.lister.Pods(env.Namespace).Get("web-0")
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	g.Expect(err).To(MatchError(`pod "web-0" not found`), "the server's message has pods: lister-gen uses the singular")
	g.Expect(apierrors.IsAlreadyExists(env.CreatePods(t.Context(), "web-0"))).To(BeTrue())
}

// A deleted object stays in the cache until the informer receives the event.
func TestTheListerOfAStoppedInformerReturnsADeletedObject(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	env := testEnv(t, "web-0")
	informer := newInformer(env.Client, env.Namespace)
	g.Expect(informer.start(t.Context())).To(Succeed())
	informer.stop()
	g.Expect(env.DeletePods(t.Context(), "web-0")).To(Succeed())
	g.Expect(informer.lister.Pods(env.Namespace).Get("web-0")).To(HaveField("Name", "web-0"))
}

// For the lister, a namespace that its informer does not watch is like an empty one.
func TestANamespaceThatIsNotWatchedLooksEmpty(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	watched, other := testEnv(t, "web-0"), testEnv(t, "web-0")
	informer := newInformer(watched.Client, watched.Namespace)
	g.Expect(informer.start(t.Context())).To(Succeed())
	defer informer.stop()
	g.Expect(informer.lister.Pods(watched.Namespace).List(labels.Everything())).To(HaveLen(1))
	g.Expect(informer.lister.Pods(other.Namespace).List(labels.Everything())).To(BeEmpty())
	_, err := informer.lister.Pods(other.Namespace).Get("web-0")
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}
