package main

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func world(t *testing.T) *lesson.World {
	t.Helper()
	return &lesson.World{
		Out: io.Discard, Config: testserver.Config(t), Client: testserver.Client(t), Namespace: testserver.Namespace(t),
	}
}

// running is a mirror of the pods a, b and c, in its own namespace, that is filled.
func running(t *testing.T) (*mirror, *WithT) {
	t.Helper()
	g := NewWithT(t)
	w := world(t)
	g.Expect(w.CreatePods(t.Context(), "a", "b", "c")).To(Succeed())
	m, err := newMirror(t.Context(), w)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(m.door.shut)
	t.Cleanup(m.start(t.Context()))
	m.expectStore(t, "Replace(a b c)")
	return m, g
}

// expectStore waits until these things were done to the store, and nothing else.
func (m *mirror) expectStore(t *testing.T, want ...string) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(m.store.all).WithTimeout(patience).Should(HaveLen(len(want)))
	g.Expect(m.store.take()).To(Equal(want))
}

// expectAttempts waits until so many requests were made, or more.
func (m *mirror) expectAttempts(t *testing.T, number int) {
	t.Helper()
	NewWithT(t).Eventually(func() int { return len(m.requests.All()) }).WithTimeout(patience).Should(BeNumerically(">=", number))
}

func TestProgram(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred(), out)
	const (
		first   = "   asked:  GET pods?watch=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true: 200\n"
		refused = "   asked:  GET pods?watch=true&allowWatchBookmarks=true&resourceVersion=N: no answer\n"
		resumed = "   asked:  GET pods?watch=true&allowWatchBookmarks=true&resourceVersion=N: 200\n"
		again   = "   asked:  GET pods?watch=true&allowWatchBookmarks=true&resourceVersion=N&resourceVersionMatch=NotOlderThan&sendInitialEvents=true: 200\n"
	)
	for _, part := range []string{
		"   store:  Replace(a b c)\n" + first,
		"   store:  Update(b), Delete(b), Add(d)\n   asked:  nothing\n",
		refused + refused + refused + refused + "   waited: 100ms, 200ms, 400ms\n   store:  as it was, a c d:",
		"   store:  Update(a), Delete(a), Add(e)\n" + resumed,
		"   store:  Replace(c d f)\n",
		again,
		"   asked:  GET pods?limit=500&resourceVersion=0: 200\n" + resumed,
	} {
		g.Expect(out).To(ContainSubstring(part))
	}
}

func TestFirstRequestIsAStreamedListAndTheWatchAfterIt(t *testing.T) {
	t.Parallel()
	m, g := running(t)
	g.Expect(m.CreatePods(t.Context(), "d")).To(Succeed())
	m.expectStore(t, "Add(d)")
	asked := m.requests.Take()
	g.Expect(asked).To(HaveLen(1))
	g.Expect(asked[0].Streams()).To(BeTrue())
	g.Expect(asked[0].Version()).To(BeEmpty())
}

func TestLastSyncResourceVersionIsThatOfTheLastEvent(t *testing.T) {
	t.Parallel()
	m, g := running(t)
	listed := m.reflector.LastSyncResourceVersion()
	g.Expect(listed).NotTo(BeEmpty())
	g.Expect(m.CreatePods(t.Context(), "d")).To(Succeed())
	pod, err := m.Client.CoreV1().Pods(m.Namespace).Get(t.Context(), "d", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(m.reflector.LastSyncResourceVersion).WithTimeout(patience).Should(Equal(pod.ResourceVersion))
}

// What happened while the server was away comes as events, deletions too, and nothing is listed.
func TestAfterAnOutageItWatchesOnWithoutAList(t *testing.T) {
	t.Parallel()
	m, g := running(t)
	g.Expect(m.CreatePods(t.Context(), "d")).To(Succeed())
	m.expectStore(t, "Add(d)")
	m.requests.Take()

	m.door.shut()
	g.Expect(m.DeletePods(t.Context(), "a")).To(Succeed())
	m.expectAttempts(t, 3)
	g.Expect(names(m.store.List())).To(Equal([]string{"a", "b", "c", "d"}), "and the store keeps what it had")

	g.Expect(m.door.open(t.Context())).To(Succeed())
	m.expectStore(t, "Update(a)", "Delete(a)")
	version := m.requests.All()[0].Version()
	g.Expect(version).NotTo(BeEmpty())
	for _, request := range m.requests.Take() {
		g.Expect(request.Watch()).To(BeTrue(), "%s", request)
		g.Expect(request.Streams()).To(BeFalse(), "%s", request)
		g.Expect(request.Version()).To(Equal(version), "%s", request)
	}
}

// A server that is not there when the reflector starts changes nothing but the time.
func TestServerThatIsNotThereYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	w := world(t)
	g.Expect(w.CreatePods(t.Context(), "a")).To(Succeed())
	m, err := newMirror(t.Context(), w)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(m.door.shut)
	m.door.shut()
	t.Cleanup(m.start(t.Context()))
	m.expectAttempts(t, 2)
	g.Expect(m.reflector.LastSyncResourceVersion()).To(BeEmpty())

	g.Expect(m.door.open(t.Context())).To(Succeed())
	m.expectStore(t, "Replace(a)")
}

// After a 410 the list tells what is left, and nobody tells what is not.
func TestAfter410AListFindsWhatWasDeleted(t *testing.T) {
	t.Parallel()
	m, g := running(t)
	g.Expect(m.CreatePods(t.Context(), "d")).To(Succeed())
	m.expectStore(t, "Add(d)")
	last := m.reflector.LastSyncResourceVersion

	m.door.shut()
	g.Expect(m.DeletePods(t.Context(), "a")).To(Succeed())
	version := last()
	m.forgetful.Store(true)
	m.requests.Take()
	g.Expect(m.door.open(t.Context())).To(Succeed())
	m.expectStore(t, "Replace(b c d)")
	g.Expect(names(m.store.List())).To(Equal([]string{"b", "c", "d"}))

	asked := m.requests.Take()
	relist := asked[len(asked)-1]
	g.Expect(relist.Streams()).To(BeTrue(), "%s", relist)
	g.Expect(relist.Version()).To(Equal(version), "not older than what it had seen: a reflector never goes back in time")
	g.Eventually(last).WithTimeout(patience).ShouldNot(Equal(version))
}

// The same with a 410 that a real server sends: Foos are served since the test's CRD was installed, and
// version 1 is older than that.
func TestAfterAReal410AListFindsWhatWasDeleted(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	w := world(t)
	m := &mirror{World: w, store: newDiary()}
	client, err := dynamic.NewForConfig(m.requests.Record(w.Config))
	g.Expect(err).NotTo(HaveOccurred())
	foos := client.Resource(v1alpha1.GroupVersion.WithResource("foos")).Namespace(w.Namespace)
	for _, name := range []string{"x", "y"} {
		_, err := foos.Create(t.Context(), foo(name), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	// A list without a version waits until the server's cache has all; the reflector's own, of version 0, does
	// not.
	_, err = foos.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	m.requests.Take()

	// The list is answered as it should be; the first watch after it asks for a version of long ago.
	var asked atomic.Int32
	m.old = true
	m.reflect(foo(""), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return foos.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if answer, err := m.instead(options); answer != nil || err != nil {
				return answer, err
			}
			if asked.Add(1) == 1 {
				g.Expect(foos.Delete(ctx, "x", metav1.DeleteOptions{})).To(Succeed())
				options.ResourceVersion = "1"
			}
			return foos.Watch(ctx, options)
		},
	})
	t.Cleanup(m.start(t.Context()))
	m.expectStore(t, "Replace(x y)", "Replace(y)")
}

func foo(name string) *unstructured.Unstructured {
	foo := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"deploymentName": "web"}}}
	foo.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Foo"))
	foo.SetName(name)
	return foo
}

// A server that refuses the streamed list, for whatever reason, is listed at once.
func TestServerThatCannotStreamIsListed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	w := world(t)
	g.Expect(w.CreatePods(t.Context(), "a")).To(Succeed())
	// This list waits until the server's cache has all; the reflector's own, of version 0, does not.
	_, err := w.Client.CoreV1().Pods(w.Namespace).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	m, err := newMirror(t.Context(), w)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(m.door.shut)
	m.old = true
	t.Cleanup(m.start(t.Context()))
	m.expectStore(t, "Replace(a)")
	g.Eventually(m.requests.All).WithTimeout(patience).Should(HaveLen(2))
	asked := m.requests.Take()
	g.Expect(asked[0].Watch()).To(BeFalse())
	g.Expect(asked[0].Version()).To(Equal("0"), "from the server's cache, however old")
	g.Expect(asked[1].Watch()).To(BeTrue())
	g.Expect(asked[1].Version()).To(Equal(m.reflector.LastSyncResourceVersion()))
}

// Fake clients say that they cannot stream, where the pair passes it on; generated informers do.
func TestFakeClientIsListed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client := fake.NewClientset()
	_, err := client.CoreV1().Pods("any").Create(t.Context(), lesson.Pod("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	store := newDiary()
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return client.CoreV1().Pods("any").List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				g.Expect(options.SendInitialEvents).To(BeNil())
				return client.CoreV1().Pods("any").Watch(ctx, options)
			},
		}, client), lesson.Pod(""), store, cache.ReflectorOptions{Name: "test"})
	m := &mirror{store: store, reflector: reflector}
	t.Cleanup(m.start(t.Context()))
	m.expectStore(t, "Replace(a)")
}

// Reflectors without a name are all called after the same line, which is in client-go: that names which
// they skip has no version in its path, and downloaded modules do.
func TestReflectorWithoutANameIsCalledAfterClientGo(t *testing.T) {
	t.Parallel()
	unnamed := cache.NewReflectorWithOptions(&cache.ListWatch{}, lesson.Pod(""), newDiary(), cache.ReflectorOptions{})
	NewWithT(t).Expect(unnamed.Name()).To(MatchRegexp(`client-go@v[^/]+/tools/cache/reflector\.go:\d+$`))
}
