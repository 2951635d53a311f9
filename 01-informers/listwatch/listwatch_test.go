package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
	"example.com/workbook/01-informers/internal/transport"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// withPods returns an observer of a namespace with the pods a, b and c. c was created first, and a last.
func withPods(t *testing.T) (*observer, *WithT) {
	t.Helper()
	g := NewWithT(t)
	o := newObserver(testserver.LessonEnv(t))
	o.CreatePods(t.Context(), "c", "b", "a")
	return o, g
}

func (o *observer) watch(t *testing.T, options metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := o.pods.Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// resourceVersion returns that of the list of pods.
func (o *observer) resourceVersion(t *testing.T) string {
	t.Helper()
	list, err := o.pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.ResourceVersion
}

// expectEvents receives as many events as are listed and compares them. To show that no other event follows, a test
// makes one more change and expects its event next.
func expectEvents(t *testing.T, w watch.Interface, want string) events {
	t.Helper()
	seen, err := receive(t.Context(), w, strings.Count(want, ",")+1)
	if err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Expect(seen.String()).To(Equal(want))
	return seen
}

func foos(t *testing.T, o *observer) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(o.requests.Attach(o.Config))
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(v1alpha1.SchemeGroupVersion.WithResource("foos")).Namespace(o.Namespace)
}

func TestProgram(t *testing.T) {
	t.Parallel()
	testserver.ExpectOutput(t, program)
}

func expectNoCRD(t *testing.T, o *observer) {
	t.Helper()
	client, err := dynamic.NewForConfig(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(func() bool {
		_, err := client.Resource(lesson.CRDs).Get(t.Context(), o.resource().GroupResource().String(), metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}).WithTimeout(lesson.Patience).Should(BeTrue())
}

func TestCRDIsDeletedAfterCtrlC(t *testing.T) {
	t.Parallel()
	o, _ := withPods(t)
	ctx, interrupt := context.WithCancel(t.Context())
	remove := o.createCRD(ctx)
	interrupt()
	remove()
	expectNoCRD(t, o)
}

// The server has created the CRD when Ctrl-C comes, and the client does not have the response yet.
func TestCRDIsDeletedAfterCtrlCDuringItsCreation(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx, interrupt := context.WithCancel(t.Context())
	env := testserver.LessonEnv(t)
	env.Config = rest.CopyConfig(env.Config)
	env.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if request.Method == http.MethodPost {
				interrupt()
				if request.Context().Err() != nil {
					_ = response.Body.Close()
					return nil, request.Context().Err()
				}
			}
			return response, err
		})
	})
	o := newObserver(env)
	g.Expect(func() { o.gone(ctx) }).To(Panic())
	g.Expect(ctx.Err()).To(HaveOccurred(), "the CRD was requested")
	expectNoCRD(t, o)
}

// The study journal's ListerWatcher lists, and then watches without the resourceVersion of the list.
func TestSeedQuestion_WatchWithoutTheListsVersionReplaysAdded(t *testing.T) {
	t.Parallel()
	o, _ := withPods(t)
	expectEvents(t, o.watch(t, metav1.ListOptions{}), "ADDED a, ADDED b, ADDED c")
}

// "0" is any state that the server has in its cache. It does not mean "from the beginning", and it replays.
func TestWatchFromVersionZeroReplaysAdded(t *testing.T) {
	t.Parallel()
	o, _ := withPods(t)
	o.resourceVersion(t) // A list without a resourceVersion waits until the watch cache has all three pods.
	expectEvents(t, o.watch(t, metav1.ListOptions{ResourceVersion: "0"}), "ADDED a, ADDED b, ADDED c")
}

// A replay is in the order of names, so a client cannot resume from the resourceVersion of its last event.
func TestReplayIsNotInTheOrderOfVersions(t *testing.T) {
	t.Parallel()
	o, g := withPods(t)
	replayed := expectEvents(t, o.watch(t, metav1.ListOptions{}), "ADDED a, ADDED b, ADDED c")
	g.Expect(number(t, replayed[0].GetResourceVersion())).To(BeNumerically(">", number(t, replayed[2].GetResourceVersion())))

	resumed := o.watch(t, metav1.ListOptions{ResourceVersion: replayed[2].GetResourceVersion()})
	expectEvents(t, resumed, "ADDED b, ADDED a")
}

func number(t *testing.T, resourceVersion string) int {
	t.Helper()
	n, err := strconv.Atoi(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWatchWithoutVersionDoesNotReportDeletions(t *testing.T) {
	t.Parallel()
	o, _ := withPods(t)
	o.DeletePods(t.Context(), "b")
	w := o.watch(t, metav1.ListOptions{})
	o.CreatePods(t.Context(), "d")
	expectEvents(t, w, "ADDED a, ADDED c, ADDED d")
}

// The server has served Foos since the CRD of this test was created, and resourceVersion 1 is older.
func TestVersionOlderThanTheWatchCacheIs410InTheStream(t *testing.T) {
	t.Parallel()
	o, g := withPods(t)
	w, err := foos(t, o).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	g.Expect(err).NotTo(HaveOccurred(), "the status of the response is 200")
	t.Cleanup(w.Stop)
	g.Expect(o.requests.Take()).To(ContainElement(HaveField("Status", http.StatusOK)))

	_, err = receive(t.Context(), w, 1)
	g.Expect(apierrors.IsResourceExpired(err)).To(BeTrue(), "%v", err)
	g.Expect(apierrors.IsGone(err)).To(BeFalse(), "the code is 410, but the reason is not Gone")
	var status *apierrors.StatusError
	g.Expect(errors.As(err, &status)).To(BeTrue())
	g.Expect(status.ErrStatus.Code).To(Equal(int32(http.StatusGone)))
	g.Expect(err).To(MatchError(ContainSubstring("too old resource version: 1 (")))
	g.Eventually(w.ResultChan()).Should(BeClosed(), "the ERROR is the last event")
}
