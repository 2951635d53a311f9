package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// world is one test's namespace with the pods a, b and c.
func world(t *testing.T) (*observer, *WithT) {
	t.Helper()
	g := NewWithT(t)
	o, err := newObserver(&lesson.World{
		Out: io.Discard, Config: testserver.Config(t), Client: testserver.Client(t), Namespace: testserver.Namespace(t),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.CreatePods(t.Context(), "c", "b", "a")).To(Succeed())
	return o, g
}

// watching opens a watch for one test.
func (o *observer) watching(t *testing.T, options metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := o.pods.Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func (o *observer) version(t *testing.T) string {
	t.Helper()
	list, err := o.pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.ResourceVersion
}

// saw takes as many events as are wanted and compares them. That nothing else came before them is part of
// the comparison; to see that nothing comes after, a test makes one more change and wants its event next.
func saw(t *testing.T, w watch.Interface, want ...string) events {
	t.Helper()
	g := NewWithT(t)
	seen, err := take(t.Context(), w, len(want))
	g.Expect(err).NotTo(HaveOccurred())
	var said []string
	for _, one := range seen {
		said = append(said, one.String())
	}
	g.Expect(said).To(Equal(want))
	return seen
}

func TestProgram(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred(), out)
	for _, line := range []string{
		"   listed: a, b, c\n",
		"   watched: ADDED d, MODIFIED a, MODIFIED b (deletionTimestamp), DELETED b\n",
		"   watched, before anything was done: ADDED a, ADDED c, ADDED d\n",
		"   watched, after e was created: ADDED e\n",
		"   watched from the version of that event: ADDED f, MODIFIED c (deletionTimestamp), DELETED c\n",
		"   page 1: a, d; 2 more\n",
		"   page 2: e, f\n",
		"   a list of now: a, d, e, g\n",
		"   watched from a version of long ago: ERROR, code 410, reason Expired\n",
		"   asked: GET notes?watch=true&resourceVersion=N: 200\n",
		"   listed again: 2 notes; watched from there: DELETED x\n",
		"   watched: ADDED a, ADDED d, ADDED e, ADDED g, BOOKMARK\n",
		"   the bookmark's annotation k8s.io/initial-events-end is true: true\n",
		"   then, on the same connection: MODIFIED a (deletionTimestamp), DELETED a\n",
		"   *v1.PodList, then ADDED h\n",
	} {
		g.Expect(out).To(ContainSubstring(line))
	}
}

// The kind that the lesson makes must not outlive it.
func TestProgramLeavesNoKind(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, remove, err := o.makeKind(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	cancel() // As Ctrl-C does.
	remove()

	client, err := dynamic.NewForConfig(o.Config)
	g.Expect(err).NotTo(HaveOccurred())
	definitions := client.Resource(definitions)
	g.Eventually(func(g Gomega) {
		_, err := definitions.Get(t.Context(), "notes."+o.Namespace+".example.com", metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	}).WithTimeout(patience).Should(Succeed())
}

// The study journey's ListerWatcher lists, and then watches without the version of the list.
func TestSeedQuestion_WatchWithoutTheListsVersionReplaysAdded(t *testing.T) {
	t.Parallel()
	o, _ := world(t)
	w := o.watching(t, metav1.ListOptions{})
	saw(t, w, "ADDED a", "ADDED b", "ADDED c")
}

func TestWatchFromTheListsVersionReplaysNothing(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	w := o.watching(t, metav1.ListOptions{ResourceVersion: o.version(t)})
	g.Expect(o.CreatePods(t.Context(), "d")).To(Succeed())
	saw(t, w, "ADDED d")
}

// "0" is any version that the server has at hand: it is not "from the beginning", and it replays.
func TestWatchFromVersionZeroReplaysAdded(t *testing.T) {
	t.Parallel()
	o, _ := world(t)
	o.version(t) // A list without a version waits for the watch cache, so that all three are in it.
	w := o.watching(t, metav1.ListOptions{ResourceVersion: "0"})
	saw(t, w, "ADDED a", "ADDED b", "ADDED c")
}

// c was created first. A replay goes by name, so the version of its last event is no place to resume from.
func TestReplayIsNotInTheOrderOfVersions(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	replayed := saw(t, o.watching(t, metav1.ListOptions{}), "ADDED a", "ADDED b", "ADDED c")
	g.Expect(number(t, replayed[0])).To(BeNumerically(">", number(t, replayed[2])))

	resumed := o.watching(t, metav1.ListOptions{ResourceVersion: replayed[2].version})
	saw(t, resumed, "ADDED b", "ADDED a")
}

func number(t *testing.T, one event) int {
	t.Helper()
	n, err := strconv.Atoi(one.version)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWatchResumesWithWhatWasMissedDeletionsToo(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	version := o.version(t)
	g.Expect(o.label(t.Context(), "a")).To(Succeed())
	g.Expect(o.DeletePods(t.Context(), "b")).To(Succeed())
	w := o.watching(t, metav1.ListOptions{ResourceVersion: version})
	saw(t, w, "MODIFIED a", "MODIFIED b (deletionTimestamp)", "DELETED b")
}

// Whoever watches anew without a version learns of no deletion.
func TestWatchWithoutVersionTellsOfNoDeletion(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	g.Expect(o.DeletePods(t.Context(), "b")).To(Succeed())
	w := o.watching(t, metav1.ListOptions{})
	g.Expect(o.CreatePods(t.Context(), "d")).To(Succeed())
	saw(t, w, "ADDED a", "ADDED c", "ADDED d")
}

func TestPagesAreOfOneMoment(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	first, err := o.pods.List(t.Context(), metav1.ListOptions{Limit: 2})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(first.Items)).To(Equal("a, b"))
	g.Expect(first.RemainingItemCount).To(HaveValue(Equal(int64(1))))

	g.Expect(o.DeletePods(t.Context(), "c")).To(Succeed())
	g.Expect(o.CreatePods(t.Context(), "d")).To(Succeed())
	second, err := o.pods.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(second.Items)).To(Equal("c"))
	g.Expect(second.Continue).To(BeEmpty())
	g.Expect(second.ResourceVersion).To(Equal(first.ResourceVersion))

	w := o.watching(t, metav1.ListOptions{ResourceVersion: second.ResourceVersion})
	saw(t, w, "MODIFIED c (deletionTimestamp)", "DELETED c", "ADDED d")
}

// The server serves Foos since the test's CRD was installed, and version 1 is older.
func TestVersionOlderThanTheWatchCacheIs410InTheStream(t *testing.T) {
	t.Parallel()
	o, g := world(t)
	client, err := dynamic.NewForConfig(o.requests.Record(o.Config))
	g.Expect(err).NotTo(HaveOccurred())
	foos := client.Resource(v1alpha1.GroupVersion.WithResource("foos")).Namespace(o.Namespace)

	w, err := foos.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	g.Expect(err).NotTo(HaveOccurred(), "the request itself is answered with 200")
	t.Cleanup(w.Stop)
	g.Expect(o.requests.Take()).To(ContainElement(HaveField("Status", http.StatusOK)))

	_, err = take(t.Context(), w, 1)
	g.Expect(apierrors.IsResourceExpired(err)).To(BeTrue(), "%v", err)
	g.Expect(apierrors.IsGone(err)).To(BeFalse(), "the code is 410, but the reason is not Gone")
	var refusal *apierrors.StatusError
	g.Expect(errors.As(err, &refusal)).To(BeTrue())
	g.Expect(refusal.ErrStatus.Code).To(Equal(int32(http.StatusGone)))
	g.Expect(err).To(MatchError(ContainSubstring("too old resource version: 1 (")))
	g.Eventually(w.ResultChan()).Should(BeClosed(), "the ERROR is the last event")
}

// ListWatch's two pairs of fields: those with a context win where both are set.
func TestListWatchPrefersTheFunctionsWithContext(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	type key struct{}
	var got any
	pair := &cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) { //nolint:staticcheck // SA1019: it is what the test is about
			t.Error("the function without a context was called")
			return nil, nil
		},
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			got = ctx.Value(key{})
			return nil, nil
		},
	}
	_, err := pair.ListWithContext(context.WithValue(t.Context(), key{}, "mine"), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal("mine"))
}

// Fake clients cannot stream a list, and say so: a reflector that is built on one lists instead.
func TestFakeClientsSayThatTheyCannotStream(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var pair cache.ListWatch
	onFake := cache.ToListWatcherWithWatchListSemantics(&pair, fake.NewClientset())
	g.Expect(watchlist.DoesClientNotSupportWatchListSemantics(onFake)).To(BeTrue())
	onReal := cache.ToListWatcherWithWatchListSemantics(&pair, &kubernetes.Clientset{})
	g.Expect(watchlist.DoesClientNotSupportWatchListSemantics(onReal)).To(BeFalse())
	g.Expect(watchlist.DoesClientNotSupportWatchListSemantics(&pair)).To(BeFalse(), "unwrapped, it is taken for a real one")
}
