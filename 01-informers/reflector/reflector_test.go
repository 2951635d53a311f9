package main

import (
	"context"
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

// withPods returns a testbed for a namespace with the pods a, b and c.
func withPods(t *testing.T) (*testbed, *WithT) {
	t.Helper()
	g := NewWithT(t)
	env := testserver.LessonEnv(t)
	g.Expect(env.CreatePods(t.Context(), "a", "b", "c")).To(Succeed())
	// This list waits until the server's cache has all pods. The reflector's own list, of resourceVersion 0, does not.
	_, err := env.Client.CoreV1().Pods(env.Namespace).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	bed, err := newTestbed(env)
	g.Expect(err).NotTo(HaveOccurred())
	return bed, g
}

// expectStore waits for these calls of the store, and no others.
func (bed *testbed) expectStore(t *testing.T, want ...string) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(bed.store.all).WithTimeout(lesson.Patience).Should(HaveLen(len(want)))
	g.Expect(bed.store.take()).To(Equal(want))
}

// expectRequests waits until the reflector has sent this number of requests, or more.
func (bed *testbed) expectRequests(t *testing.T, number int) {
	t.Helper()
	NewWithT(t).Eventually(func() int { return len(bed.requests.All()) }).WithTimeout(lesson.Patience).Should(BeNumerically(">=", number))
}

func TestProgram(t *testing.T) {
	t.Parallel()
	testserver.ExpectOutput(t, program)
}

func TestReflectorThatStartsDuringAnOutageListsAfterIt(t *testing.T) {
	t.Parallel()
	bed, g := withPods(t)
	bed.outage.begin()
	t.Cleanup(bed.start(t.Context()))
	bed.expectRequests(t, 2)
	g.Expect(bed.reflector.LastSyncResourceVersion()).To(BeEmpty())

	bed.outage.end()
	bed.expectStore(t, "Replace(a b c)")
}

// The server sends this 410 itself. It has served Foos since the CRD of this test was created, and resourceVersion 1 is
// older.
func TestListAfter410FromTheServerOmitsDeletedObjects(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	env := testserver.LessonEnv(t)
	bed := &testbed{Env: env, store: newStore(), noStreaming: true}
	client, err := dynamic.NewForConfig(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	foos := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("foos")).Namespace(env.Namespace)
	for _, name := range []string{"x", "y"} {
		_, err := foos.Create(t.Context(), foo(name), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	_, err = foos.List(t.Context(), metav1.ListOptions{}) // As in withPods.
	g.Expect(err).NotTo(HaveOccurred())

	// The first watch after the list is from a resourceVersion that is too old.
	var watches atomic.Int32
	bed.reflect(foo(""), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return foos.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if simulated, err := bed.simulate(options); simulated != nil || err != nil {
				return simulated, err
			}
			if watches.Add(1) == 1 {
				g.Expect(foos.Delete(ctx, "x", metav1.DeleteOptions{})).To(Succeed())
				options.ResourceVersion = "1"
			}
			return foos.Watch(ctx, options)
		},
	})
	t.Cleanup(bed.start(t.Context()))
	bed.expectStore(t, "Replace(x y)", "Replace(y)")
}

func foo(name string) *unstructured.Unstructured {
	foo := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"deploymentName": "web"}}}
	foo.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("Foo"))
	foo.SetName(name)
	return foo
}

// A fake client reports that it has no streaming lists. The reflector learns that if the ListWatch has the client, as
// those of the generated informers do.
func TestReflectorListsAFakeClient(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client := fake.NewClientset()
	_, err := client.CoreV1().Pods("any").Create(t.Context(), lesson.Pod("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	store := newStore()
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
	bed := &testbed{store: store, reflector: reflector}
	t.Cleanup(bed.start(t.Context()))
	bed.expectStore(t, "Replace(a)")
}

// The name of an unnamed reflector should be the line that made it. To skip its own lines, client-go has paths without a
// version; the path of a downloaded module has one, so the name is always the same line of client-go.
func TestReflectorWithoutANameHasTheNameOfALineOfClientGo(t *testing.T) {
	t.Parallel()
	unnamed := cache.NewReflectorWithOptions(&cache.ListWatch{}, lesson.Pod(""), newStore(), cache.ReflectorOptions{})
	NewWithT(t).Expect(unnamed.Name()).To(MatchRegexp(`client-go@v[^/]+/tools/cache/reflector\.go:\d+$`))
}
