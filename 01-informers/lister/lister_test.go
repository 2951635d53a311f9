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
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred())
	for _, line := range []string{
		"6 pods, requests so far: 3 (list 3)",
		"before the informer was started: 0 pods, no error, requests: 0",
		"1000 times List (6 pods) and Get:     requests: 0",
		"a pod made while the watch is open:   the lister has it, requests: 0",
		`the lister: pod "unheard-0" not found`,
		"List(app=web), with one                              found 400  labels compared 10000",
		"two readers get the same pointer:      true",
	} {
		g.Expect(out).To(ContainSubstring(line))
	}
}

// The study journey describes the generated lister as the one that lists from the API server. There are two
// things of that name. Counted at the transport, only one of them makes requests.
func TestSeedQuestion_WhichListerTalksToTheServer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	g.Expect(makePods(t.Context(), testserver.Client(t), namespace, map[string]int{"web": 3})).To(Succeed())
	requests, client, err := counted(testserver.Config(t))
	g.Expect(err).NotTo(HaveOccurred())

	var fromServer cache.ListerWithContext = cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	for range 5 {
		_, err := fromServer.ListWithContext(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(requests.String()).To(Equal("5 (list 5)"), "cache.Lister: one request each time")

	requests.reset()
	informer := newInformer(client, namespace)
	g.Expect(informer.start(t.Context())).To(Succeed())
	defer informer.stop()
	_, isOne := any(informer.lister).(cache.ListerWithContext)
	g.Expect(isOne).To(BeFalse(), "the generated lister is no cache.Lister: it has neither context nor options")
	g.Expect(requests.lists.Load()+requests.watches.Load()).To(BeNumerically(">", 0), "the informer asked, once")

	requests.reset()
	for range 1000 {
		pods, err := informer.lister.List(labels.Everything())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods).To(HaveLen(3))
		_, err = informer.lister.Pods(namespace).Get("nobody")
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	}
	g.Expect(requests.String()).To(Equal("0"), "the lister never does: not for what it lacks, either")
}

// A lister that is asked too early does not say so.
func TestAListerOfAnInformerThatWasNotStartedIsEmpty(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	g.Expect(makePods(t.Context(), testserver.Client(t), namespace, map[string]int{"web": 1})).To(Succeed())
	informer := newInformer(testserver.Client(t), namespace)
	g.Expect(informer.lister.List(labels.Everything())).To(BeEmpty())
	_, err := informer.lister.Pods(namespace).Get("web-0")
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())

	g.Expect(informer.start(t.Context())).To(Succeed())
	defer informer.stop()
	g.Expect(informer.lister.List(labels.Everything())).To(HaveLen(1))
}

// NotFound from a lister is the cache's word. A controller that creates on it must be ready for AlreadyExists.
func TestNotFoundFromAListerIsNotTheServersWord(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	client := testserver.Client(t)
	informer := newInformer(client, namespace)
	g.Expect(informer.start(t.Context())).To(Succeed())
	informer.stop()
	g.Expect(makePods(t.Context(), client, namespace, map[string]int{"web": 1})).To(Succeed())

	_, err := informer.lister.Pods(namespace).Get("web-0")
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	g.Expect(err).To(MatchError(`pod "web-0" not found`), "the server says pods: lister-gen passes the singular")
	err = makePods(t.Context(), client, namespace, map[string]int{"web": 1})
	g.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue())
}

// And the other way round: what was deleted is there until the informer hears of it.
func TestAStoppedInformersListerGoesOnAnswering(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	client := testserver.Client(t)
	g.Expect(makePods(t.Context(), client, namespace, map[string]int{"web": 1})).To(Succeed())
	informer := newInformer(client, namespace)
	g.Expect(informer.start(t.Context())).To(Succeed())
	informer.stop()
	g.Expect(client.CoreV1().Pods(namespace).Delete(t.Context(), "web-0", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})).To(Succeed())
	g.Expect(informer.lister.Pods(namespace).Get("web-0")).To(HaveField("Name", "web-0"))
}

// To the lister, a namespace that its informer leaves out looks like an empty one.
func TestAListerDoesNotKnowWhatItsInformerLeavesOut(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	mine, others := testserver.Namespace(t), testserver.Namespace(t)
	client := testserver.Client(t)
	g.Expect(makePods(t.Context(), client, mine, map[string]int{"web": 1})).To(Succeed())
	g.Expect(makePods(t.Context(), client, others, map[string]int{"web": 1})).To(Succeed())
	informer := newInformer(client, mine)
	g.Expect(informer.start(t.Context())).To(Succeed())
	defer informer.stop()
	g.Expect(informer.lister.Pods(mine).List(labels.Everything())).To(HaveLen(1))
	g.Expect(informer.lister.Pods(others).List(labels.Everything())).To(BeEmpty())
	_, err := informer.lister.Pods(others).Get("web-0")
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}
