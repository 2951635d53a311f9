package main

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

// api is the API of one test, on a real API server or in the fake clientset.
type api struct {
	*testing.T
	*WithT
	client    kubernetes.Interface
	namespace string
}

func (a api) create(pod *corev1.Pod) (*corev1.Pod, error) {
	return a.client.CoreV1().Pods(a.namespace).Create(a.Context(), pod, metav1.CreateOptions{})
}

func (a api) mustCreate(names ...string) *corev1.Pod {
	var last *corev1.Pod
	for _, name := range names {
		pod, err := a.create(lesson.Pod(name))
		a.Expect(err).NotTo(HaveOccurred())
		last = pod
	}
	return last
}

func (a api) list(options metav1.ListOptions) string {
	list, err := a.client.CoreV1().Pods(a.namespace).List(a.Context(), options)
	a.Expect(err).NotTo(HaveOccurred())
	return fmt.Sprint(len(list.Items))
}

// outcome returns the reason of an error, or that the request was accepted.
func outcome(err error) string {
	if err == nil {
		return "accepted"
	}
	return string(apierrors.ReasonForError(err))
}

// behavior is the result of the same requests on a server and on the fake.
type behavior struct {
	do           func(api) string
	server, fake string
}

var behaviors = map[string]behavior{
	"lists the objects that were created": {func(a api) string {
		a.mustCreate("a", "b")
		return a.list(metav1.ListOptions{})
	}, "2", "2"},

	"rejects a second object of the same name": {func(a api) string {
		a.mustCreate("a")
		_, err := a.create(lesson.Pod("a"))
		return outcome(err)
	}, "AlreadyExists", "AlreadyExists"},

	"selects by label": {func(a api) string {
		pod := lesson.Pod("a")
		pod.Labels = map[string]string{"app": "web"}
		_, err := a.create(pod)
		a.Expect(err).NotTo(HaveOccurred())
		a.mustCreate("b")
		return a.list(metav1.ListOptions{LabelSelector: "app=web"})
	}, "1", "1"},

	"selects by field": {func(a api) string {
		a.mustCreate("a", "b")
		return a.list(metav1.ListOptions{FieldSelector: "metadata.name=a"})
	}, "1", "2"},

	"lists in pages": {func(a api) string {
		a.mustCreate("a", "b")
		return a.list(metav1.ListOptions{Limit: 1})
	}, "1", "2"},

	"validates": {func(a api) string {
		_, err := a.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "Not A Name"}})
		return outcome(err)
	}, "Invalid", "accepted"},

	"requires that the namespace exists": {func(a api) string {
		a.namespace = "missing"
		_, err := a.create(lesson.Pod("a"))
		return outcome(err)
	}, "NotFound", "accepted"},

	"sets defaults": {func(a api) string {
		return string(a.mustCreate("a").Spec.RestartPolicy)
	}, "Always", ""},

	"sets uid, resourceVersion and creationTimestamp": {func(a api) string {
		pod := a.mustCreate("a")
		return fmt.Sprintf("uid %t, version %t, time %t", pod.UID != "", pod.ResourceVersion != "", !pod.CreationTimestamp.IsZero())
	}, "uid true, version true, time true", "uid false, version false, time false"},

	"generates a name": {func(a api) string {
		pod := lesson.Pod("")
		pod.GenerateName = "a-"
		pod, err := a.create(pod)
		a.Expect(err).NotTo(HaveOccurred())
		return fmt.Sprint(pod.Name != "")
	}, "true", "false"},

	"rejects an update with an old resourceVersion": {func(a api) string {
		pod := a.mustCreate("a")
		pod.ResourceVersion = "1"
		_, err := a.client.CoreV1().Pods(a.namespace).Update(a.Context(), pod, metav1.UpdateOptions{})
		return outcome(err)
	}, "Conflict", "accepted"},

	"checks preconditions": {func(a api) string {
		a.mustCreate("a")
		return outcome(a.client.CoreV1().Pods(a.namespace).Delete(a.Context(), "a",
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}))
	}, "Conflict", "accepted"},

	"ignores the status in an update": {func(a api) string {
		pod := a.mustCreate("a")
		pod.Status.Message = "changed"
		pod, err := a.client.CoreV1().Pods(a.namespace).Update(a.Context(), pod, metav1.UpdateOptions{})
		a.Expect(err).NotTo(HaveOccurred())
		return pod.Status.Message
	}, "", "changed"},

	"ignores the spec in an update of the status": {func(a api) string {
		pod := a.mustCreate("a")
		pod.Spec.Containers[0].Image = "example.com/another"
		pod, err := a.client.CoreV1().Pods(a.namespace).UpdateStatus(a.Context(), pod, metav1.UpdateOptions{})
		a.Expect(err).NotTo(HaveOccurred())
		return pod.Spec.Containers[0].Image
	}, "example.com/none", "example.com/another"},

	"reports a conflict of field managers": {func(a api) string {
		apply := func(manager, value string) error {
			_, err := a.client.CoreV1().ConfigMaps(a.namespace).Apply(a.Context(),
				corev1ac.ConfigMap("c", a.namespace).WithData(map[string]string{"key": value}),
				metav1.ApplyOptions{FieldManager: manager})
			return err
		}
		a.Expect(apply("one", "1")).To(Succeed())
		return outcome(apply("two", "2"))
	}, "Conflict", "Conflict"},
}

func TestFakeClientsetBesideARealServer(t *testing.T) {
	t.Parallel()
	for name, test := range behaviors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.Expect(test.do(api{t, g, testserver.Client(t), testserver.Namespace(t)})).To(Equal(test.server), "a server")
			g.Expect(test.do(api{t, g, fake.NewClientset(), "any"})).To(Equal(test.fake), "the fake")
		})
	}
}

// NewClientset replaces NewSimpleClientset, which does not keep managed fields.
func TestSimpleClientsetReportsNoConflictOfFieldManagers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "any"}}
	client := fake.NewSimpleClientset(configMap)
	for _, manager := range []string{"one", "two"} {
		_, err := client.CoreV1().ConfigMaps("any").Apply(t.Context(),
			corev1ac.ConfigMap("c", "any").WithData(map[string]string{"key": manager}),
			metav1.ApplyOptions{FieldManager: manager})
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// A fake clientset records the requests, and a test can make them fail.
func TestFakeRecordsRequestsAndInjectsErrors(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client := fake.NewClientset()
	client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not today")
	})
	pods := client.CoreV1().Pods("any")
	_, err := pods.Create(t.Context(), lesson.Pod("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = pods.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"web"}}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods.Delete(t.Context(), "a", metav1.DeleteOptions{})).To(MatchError("not today"))

	var requests []string
	for _, action := range client.Actions() {
		requests = append(requests, action.GetVerb()+" "+action.GetResource().Resource)
	}
	g.Expect(requests).To(Equal([]string{"create pods", "patch pods", "delete pods"}))
}

// A fake watch replays the existing objects, unless it starts at the resourceVersion of a list. It does not replay
// deletions.
func TestFakeWatchDoesNotReplayDeletions(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	a := api{t, g, fake.NewClientset(), "any"}
	pods := a.client.CoreV1().Pods("any")
	a.mustCreate("a", "b")
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods.Delete(t.Context(), "a", metav1.DeleteOptions{})).To(Succeed())
	a.mustCreate("c")

	w, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.Stop)
	a.mustCreate("d")
	for _, want := range []string{"c", "d"} {
		var event watch.Event
		g.Eventually(w.ResultChan()).Should(Receive(&event))
		g.Expect(event.Type).To(Equal(watch.Added))
		g.Expect(event.Object.(*corev1.Pod).Name).To(Equal(want))
	}
}
