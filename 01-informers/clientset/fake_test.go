package main

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

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
